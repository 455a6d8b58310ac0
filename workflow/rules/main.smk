# takes: results/dataset/
# makes: results/main/models/{name}/ models.safetensors, config.json, curves.csv, metrics.csv,
#        SHA256SUMS (links into store/), checkpoints/ while a job is unfinished; a name is
#        {protocol}-{arm}-{placement}-{learning rate}-{first seed}


rule main_train:
    input:
        code("main_train"),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
    output:
        multiext("results/main/models/{name}/", *TRAINED),
    log:
        "results/logs/main_train/{name}.log",
    cache: "omit-software"
    # no benchmark: Snakemake refuses it for cached rules, so the script writes its own
    conda:
        "../envs/normscope.yaml"
    threads: slots()
    resources:
        mem_mb=stack_mb("main"),
        runtime=minutes("main_train"),
        gpu=GPUS,
    params:
        recipe=recipe(CONFIG.main.trainings()),
        study="main",
    shell:
        'python "$NORMSCOPE/scripts/main_train.py" --recipe {params.recipe:q} --threads 1'
        " --data results/dataset"
        " --checkpoints results/{params.study}/checkpoints/{wildcards.name}"
        ' --store "$SNAKEMAKE_OUTPUT_CACHE"'
        " --timing results/benchmarks/{params.study}_train/{wildcards.name}.tsv"
        " --out results/{params.study}/models/{wildcards.name} &> {log}"


# takes: results/main/models/{name}/, results/dataset/
# makes: results/main/probes/{name}/ stream.csv, the residual stream per position; laws.csv, its gain
#        against the entropy of the prediction


rule main_probe:
    input:
        code("main_probe"),
        multiext("results/dataset/", "val.bin", "train.bin", "meta.pkl"),
        multiext("results/main/models/{name}/", *TRAINED[:2]),
    output:
        multiext("results/main/probes/{name}/", "stream.csv", "laws.csv"),
    log:
        "results/logs/main_probe/{name}.log",
    benchmark:
        "results/benchmarks/main_probe/{name}.tsv"
    conda:
        "../envs/normscope.yaml"
    resources:
        mem_mb=growing(1500),
        runtime=growing(5),
        gpu=GPUS,
    params:
        recipe=recipe(CONFIG.main.probes()),
    shell:
        'python "$NORMSCOPE/scripts/main_probe.py" --recipe {params.recipe:q} --threads 1'
        " --models results/main/models/{wildcards.name} --data results/dataset"
        " --out results/main/probes/{wildcards.name} &> {log}"


# takes: results/main/models/*/, results/main/probes/*/, data/published.csv, data/nanogpt_*.json
# makes: results/main/tables/


rule main_tables:
    input:
        code("main_tables"),
        expand(
            "results/main/models/{name}/{file}",
            name=CONFIG.main.trainings(),
            file=["metrics.csv", "curves.csv"],
        ),
        # what is held against the settings of published numbers
        f"results/main/models/{CONFIG.main.reference_jobs[0]}/config.json",
        expand(
            "results/main/probes/{name}/{file}.csv",
            name=CONFIG.main.probes(),
            file=["stream", "laws"],
        ),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl", "meta.json"),
        published=data("published.csv"),
        references=[data(f"nanogpt_{unit}.json") for unit in ("cpu", "gpu")],
    output:
        tables("main"),
    log:
        "results/logs/main_tables.log",
    benchmark:
        "results/benchmarks/main_tables.tsv"
    conda:
        "../envs/normscope.yaml"
    params:
        recipe=recipe(CONFIG.main.tabulation(CONFIG.settings)),
    shell:
        'python "$NORMSCOPE/scripts/main_tables.py" --recipe {params.recipe:q}'
        " --models results/main/models"
        " --probes results/main/probes --data results/dataset --published {input.published:q}"
        ' --references "$NORMSCOPE/data" --out results/main/tables &> {log}'
