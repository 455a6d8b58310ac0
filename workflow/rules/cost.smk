# reads:  workflow/costs.yaml, and costs.yaml of each study
# writes: nothing; prints the projected core-hours of a configuration:
#         snakemake cost --cores 1 --configfile config/paper.yaml


# This is a checkpoint although nothing depends on it. Without a checkpoint, a cluster job knows only
# the rule of the job, and would store a model under a different name than a run on one machine does.
checkpoint cost:
    input:
        code("cost"),
        of_studies("costs.yaml"),
        reference=project("workflow/costs.yaml"),
    log:
        "results/logs/cost.log",
    conda:
        "../envs/normscope.yaml"
    params:
        config=verbatim(CONFIG.model_dump_json()),
    shell:
        'python "$NORMSCOPE/scripts/cost.py" --config {params.config:q}'
        " --reference {input.reference:q} 2>&1 | tee {log}"
