# takes: workflow/costs.yaml; if they exist, results/benchmarks/** and results/paper/manifest.json of
#        the run that wrote them
# makes: nothing; prints the core-hours that a configuration costs, measured or projected:
#        snakemake cost --cores 1 --configfile config/paper.yaml


# A checkpoint, though nothing depends on it: in a workflow without one, a job on a cluster knows no
# rule but its own, and would store a model under another name than a run on one machine does.
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
