# reads:  a model from the location given in the configuration, and data/prompts.yaml
# writes: results/pretrained/probes/{name}/ with gains.csv, norms.csv, inside.csv and model.json
#         (links into store/); converted weights in results/weights/, commits of hub models in
#         store/revisions/


rule pretrained_probe:
    input:
        code("pretrained_probe"),
        model_files,
        prompts=data("prompts.yaml"),
    output:
        multiext(
            "results/pretrained/probes/{name}/", *CONFIG.pretrained.STAGES.model_files
        ),
    log:
        "results/logs/pretrained_probe/{name}.log",
    cache: "omit-software"
    priority: 2 * FIRST
    # no benchmark: Snakemake refuses it for cached rules, so the script writes one
    conda:
        "../envs/normscope.yaml"
    threads: CONFIG.pretrained.threads
    resources:
        mem_mb=per_attempt(measure_mb),
        weights_mb=round(CONFIG.pretrained.memory_gb * 1000),
        fetch_s=timeout_s,
        runtime=per_attempt(240),
        gpu=GPUS,
    params:
        recipe=recipe(CONFIG.pretrained.probes()),
        threads=CONFIG.pretrained.threads,
    # memory and time do not affect the result: as resources, they can change without a rerun
    shell:
        'python "$NORMSCOPE/scripts/pretrained_probe.py" --recipe {params.recipe:q}'
        " --prompts {input.prompts:q}"
        " --threads {params.threads} --memory-mb {resources.weights_mb}"
        " --fetch-s {resources.fetch_s} --weights results/weights"
        ' --revisions "$SNAKEMAKE_OUTPUT_CACHE/revisions" --store "$SNAKEMAKE_OUTPUT_CACHE"'
        " --timing results/benchmarks/pretrained_probe/{wildcards.name}.tsv"
        " --out results/pretrained/probes/{wildcards.name} &> {log}"


# reads:  results/pretrained/tables/
# writes: results/paper/residual_gain.json, in the format that the published notebook saves


rule residual_gain:
    input:
        code("residual_gain"),
        [table_file("pretrained", name) for name in ("models", "gains", "norms")],
    output:
        "results/paper/residual_gain.json",
    log:
        "results/logs/residual_gain.log",
    group:
        "paper"
    conda:
        "../envs/normscope.yaml"
    shell:
        'python "$NORMSCOPE/scripts/residual_gain.py" --tables results/pretrained/tables'
        " --out {output} &> {log}"
