# takes: a model where the configuration says it is, data/prompts.yaml
# makes: results/pretrained/{model}/ gains.csv, norms.csv, model.json (links into store/); what a
#        conversion makes stays in results/weights/, the commits of hub models in store/revisions/


rule measure:
    input:
        code("measure"),
        files_of_model,
        prompts="data/prompts.yaml",
    output:
        multiext(
            "results/pretrained/{model}/",
            "gains.csv",
            "norms.csv",
            "model.json",
            "SHA256SUMS",
        ),
    log:
        "results/logs/measure/{model}.log",
    cache: "omit-software"
    # no benchmark: Snakemake refuses it for cached rules, so the script writes its own
    conda:
        "../envs/normscope.yaml"
    threads: CONFIG.pretrained.threads * slots()
    resources:
        mem_mb=growing(measure_mb),
        weights_mb=round(CONFIG.pretrained.memory_gb * 1000),
        fetch_s=model_timeout,
        runtime=growing(240),
        gpu=0,  # one, by a profile: then on a GPU, where the machine has one
    params:
        pins=pins("measure"),
        model=model_json,
        threads=CONFIG.pretrained.threads,
    # memory and time decide how, not what: as resources, so that others measure nothing
    shell:
        "python scripts/measure.py --model {params.model:q} --prompts {input.prompts}"
        " --threads {params.threads} --memory-mb {resources.weights_mb}"
        " --gpus {resources.gpu} --fetch-s {resources.fetch_s} --weights results/weights"
        ' --revisions "$SNAKEMAKE_OUTPUT_CACHE/revisions" --store "$SNAKEMAKE_OUTPUT_CACHE"'
        " --timing results/benchmarks/measure/{wildcards.model}.tsv"
        " --out results/pretrained/{wildcards.model} &> {log}"


# takes: results/pretrained/*/, data/prompts.yaml
# makes: results/pretrained/ models.csv, gains.csv, norms.csv (of all models), sensitivity.csv,
#        layers.csv


rule measured:
    input:
        code("measured"),
        of_models("results/pretrained/{model}/gains.csv"),
        of_models("results/pretrained/{model}/norms.csv"),
        of_models("results/pretrained/{model}/model.json"),
        prompts="data/prompts.yaml",
    output:
        multiext(
            "results/pretrained/",
            "models.csv",
            "gains.csv",
            "norms.csv",
            "sensitivity.csv",
            "layers.csv",
        ),
    log:
        "results/logs/measured.log",
    benchmark:
        "results/benchmarks/measured.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        pins=pins("measured"),
        models=verbatim(CONFIG.pretrained.collected.model_dump_json()),
        level=CONFIG.level,
    shell:
        "python scripts/measured.py --models {params.models:q} --measured results/pretrained"
        " --prompts {input.prompts} --level {params.level} --out results/pretrained &> {log}"


# takes: results/pretrained/*.csv, data/prompts.yaml, the published numbers in data/
# makes: results/pretrained/ observations.csv, by_model.csv, by_category.csv, by_norm.csv,
#        twins.csv, h25_models.csv, h25.csv; results/paper/residual_gain.json, all of it


rule pretrained:
    input:
        code("pretrained"),
        expand("results/pretrained/{table}.csv", table=["models", "gains", "layers"]),
        prompts="data/prompts.yaml",
        references="data/reference_gains.csv",
        reference_prompts="data/reference_prompts.csv",
    output:
        multiext(
            "results/pretrained/",
            "observations.csv",
            "by_model.csv",
            "by_category.csv",
            "by_norm.csv",
            "twins.csv",
            "h25_models.csv",
            "h25.csv",
        ),
        document="results/paper/residual_gain.json",
    log:
        "results/logs/pretrained.log",
    benchmark:
        "results/benchmarks/pretrained.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        pins=pins("pretrained"),
        resamples=CONFIG.pretrained.resamples,
        level=CONFIG.level,
    shell:
        "python scripts/pretrained.py --measured results/pretrained --prompts {input.prompts}"
        " --references {input.references} --reference-prompts {input.reference_prompts}"
        " --resamples {params.resamples} --level {params.level} --out results/pretrained"
        " --document {output.document} &> {log}"
