# reads:  workflow/costs.yaml and, if they exist, results/benchmarks/** and
#         results/paper/manifest.json of the run that wrote them
# writes: nothing; prints the core-hours that a configuration costs, measured or projected:
#         snakemake cost --cores 1 --configfile config/paper.yaml


# This is a checkpoint although nothing depends on it. Without a checkpoint, a cluster job knows only
# the rule of the job, and would store a model under a different name than a run on one machine does.
checkpoint cost:
    input:
        code("cost"),
        reference=project("workflow/costs.yaml"),
    log:
        "results/logs/cost.log",
    conda:
        "../envs/normscope.yaml"
    params:
        config=verbatim(CONFIG.model_dump_json()),
    shell:
        'python "$NORMSCOPE/scripts/cost.py" --config {params.config:q}'
        " --reference {input.reference:q}"
        " --manifest results/paper/manifest.json --benchmarks results/benchmarks"
        " 2>&1 | tee {log}"
