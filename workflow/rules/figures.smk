# reads:  results/*/tables/*.csv as listed in figures.yaml of each study, never a model; the ledger
# writes: results/paper/figures/ with {figure}.pdf, .svg and .txt (the caption with n), for every
#         figure of a study and for those of the ledger (forest, reach)

LOOK = CONFIG.figures.model_dump() | {"level": CONFIG.level}


for figure, title in figures.OF_LEDGER.items():

    rule:
        name:
            figure
        input:
            code("draw_ledger"),
            claims="results/paper/claims.json",
        output:
            multiext(f"results/paper/figures/{figure}", ".pdf", ".txt"),
            report(
                f"results/paper/figures/{figure}.svg",
                caption="../report/figure.rst",
                category="Ledger",
            ),
        log:
            f"results/logs/figures/{figure}.log",
        benchmark:
            f"results/benchmarks/figures/{figure}.tsv"
        group:
            "paper"
        conda:
            "../envs/normscope.yaml"
        params:
            figure=figure,
            look=verbatim(json.dumps(LOOK)),
            caption=f"{title}, in units of bounds or margins.",
        shell:
            'python "$NORMSCOPE/scripts/draw_ledger.py" {params.figure} --claims {input.claims:q}'
            " --look {params.look:q} --out results/paper/figures/{params.figure} &> {log}"


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
                category=entry.category,
            ),
        log:
            f"results/logs/figures/{figure}.log",
        benchmark:
            f"results/benchmarks/figures/{figure}.tsv"
        group:
            "figures"  # on a cluster, one job draws all figures
        conda:
            "../envs/normscope.yaml"
        params:
            # the command is formatted when a job starts, after the loop has ended
            study=entry.study,
            figure=figure,
            tables=",".join(f"{name}={path}" for name, path in shown.items()),
            params=verbatim(json.dumps(entry.values(CONFIG))),
            look=verbatim(json.dumps(LOOK)),
            caption=verbatim(entry.caption),
        shell:
            'python "$NORMSCOPE/scripts/draw.py" {params.study} {params.figure} --tables {params.tables}'
            " --params {params.params:q} --look {params.look:q} --caption {params.caption:q}"
            " --out results/paper/figures/{params.figure} &> {log}"
