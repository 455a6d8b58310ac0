# reads:  results/*/tables/*.csv as listed in workflow/figures.yaml, never a model
# writes: results/paper/figures/ with {figure}.pdf, .svg and .txt (the caption with n)

LOOK = CONFIG.figures.model_dump() | {"level": CONFIG.level}


for figure, entry in FIGURES.items():
    sources = {name: table_file(*table) for name, table in entry.sources.items()}

    rule:
        name:
            f"figure_{figure}"
        input:
            code(f"figures/{figure}"),
            list(sources.values()),
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
            figure=figure,
            tables=",".join(f"{name}={path}" for name, path in sources.items()),
            params=verbatim(json.dumps(entry.values(CONFIG))),
            look=verbatim(json.dumps(LOOK)),
            caption=verbatim(entry.caption),
        shell:
            'python "$NORMSCOPE/scripts/figures/{params.figure}.py" --tables {params.tables}'
            " --params {params.params:q} --look {params.look:q} --caption {params.caption:q}"
            " --out results/paper/figures/{params.figure} &> {log}"
