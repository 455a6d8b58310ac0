# takes: a model where the configuration says it is, data/prompts.yaml
# makes: results/pretrained/probes/{name}/ gains.csv, norms.csv, model.json (links into store/); what
#        a conversion makes stays in results/weights/, the commits of hub models in store/revisions/

# looked for once, at the start
MODEL_FILES = {
    name: model_files(model.source)
    for name, model in CONFIG.pretrained.by_name().items()
}


rule pretrained_probe:
    input:
        code("pretrained_probe"),
        measured_files,
        prompts=data("prompts.yaml"),
    output:
        multiext(
            "results/pretrained/probes/{name}/",
            "gains.csv",
            "norms.csv",
            "model.json",
            "SHA256SUMS",
        ),
    log:
        "results/logs/pretrained_probe/{name}.log",
    cache: "omit-software"
    # no benchmark: Snakemake refuses it for cached rules, so the script writes its own
    conda:
        "../envs/normscope.yaml"
    threads: CONFIG.pretrained.threads * slots()
    resources:
        mem_mb=growing(measure_mb),
        weights_mb=round(CONFIG.pretrained.memory_gb * 1000),
        fetch_s=timeout_s,
        runtime=growing(240),
        gpu=GPUS,
    params:
        recipe=recipe(CONFIG.pretrained.probes()),
        threads=CONFIG.pretrained.threads,
    # memory and time decide how, not what: as resources, so that others measure nothing
    shell:
        'python "$NORMSCOPE/scripts/pretrained_probe.py" --recipe {params.recipe:q}'
        " --prompts {input.prompts:q}"
        " --threads {params.threads} --memory-mb {resources.weights_mb}"
        " --fetch-s {resources.fetch_s} --weights results/weights"
        ' --revisions "$SNAKEMAKE_OUTPUT_CACHE/revisions" --store "$SNAKEMAKE_OUTPUT_CACHE"'
        " --timing results/benchmarks/pretrained_probe/{wildcards.name}.tsv"
        " --out results/pretrained/probes/{wildcards.name} &> {log}"


# takes: results/pretrained/tables/, data/prompts.yaml
# makes: results/paper/residual_gain.json, what the published notebook saves


rule residual_gain:
    input:
        code("residual_gain"),
        tables("pretrained"),
        prompts=data("prompts.yaml"),
    output:
        "results/paper/residual_gain.json",
    log:
        "results/logs/residual_gain.log",
    benchmark:
        "results/benchmarks/residual_gain.tsv"
    conda:
        "../envs/normscope.yaml"
    shell:
        'python "$NORMSCOPE/scripts/residual_gain.py" --tables results/pretrained/tables'
        " --prompts {input.prompts:q} --out {output} &> {log}"
