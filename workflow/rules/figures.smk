# reads:  results/*/tables/*.csv as listed in figures.yaml of each study, never a model
# writes: results/paper/figures/ with {figure}.pdf, .svg and .txt (the caption with n)

LOOK = CONFIG.figures.model_dump() | {"level": CONFIG.level}
# labels of arms with code of their own
ARMS = constant(
    json.dumps({name: arm.model_dump() for name, arm in CONFIG.arms.items()})
)


for figure, entry in FIGURES.items():
    shown = {name: table_file(*table) for name, table in entry.sources.items()}

    rule:
        name:
            f"figure_{figure}"
        input:
            code("draw", entry.study, f"figures/{figure}"),
            list(shown.values()),
        output:
            multiext(f"results/paper/figures/{figure}", ".pdf", ".txt"),
            report(
                f"results/paper/figures/{figure}.svg",
                caption="../report/figure.rst",
                category=entry.study,
            ),
        log:
            f"results/logs/figures/{figure}.log",
        group:
            "figures"  # on a cluster, one job draws all figures
        conda:
            "../envs/normscope.yaml"
        params:
            # the command is formatted when a job starts, after the loop has ended
            study=entry.study,
            figure=figure,
            tables=",".join(f"{name}={path}" for name, path in shown.items()),
            params=constant(json.dumps(entry.values(CONFIG))),
            arms=ARMS,
            look=constant(json.dumps(LOOK)),
            caption=constant(entry.caption),
        shell:
            'python "$NORMSCOPE/scripts/draw.py" {params.study} {params.figure} --tables {params.tables}'
            " --params {params.params:q} --arms {params.arms:q} --look {params.look:q}"
            " --caption {params.caption:q} --out results/paper/figures/{params.figure} &> {log}"
