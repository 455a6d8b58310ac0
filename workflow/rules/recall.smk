# takes: nothing but the configuration: its data are drawn
# makes: results/recall/models/{name}/ as main_train, and Adam's second moments; a name is
#        {task}-{arm}-{learning rate}-{first seed}


rule recall_train:
    input:
        code("recall_train"),
    output:
        multiext("results/recall/models/{name}/", *TRAINED, "moments.safetensors"),
    log:
        "results/logs/recall_train/{name}.log",
    cache: "omit-software"
    # no benchmark: Snakemake refuses it for cached rules, so the script writes its own
    conda:
        "../envs/normscope.yaml"
    threads: slots()
    resources:
        runtime=minutes("recall_train"),
        mem_mb=growing(1500),
        gpu=GPUS,
    params:
        recipe=recipe(CONFIG.recall.trainings()),
    shell:
        'python "$NORMSCOPE/scripts/recall_train.py" --recipe {params.recipe:q} --threads 1'
        " --checkpoints results/recall/checkpoints/{wildcards.name}"
        ' --store "$SNAKEMAKE_OUTPUT_CACHE"'
        " --timing results/benchmarks/recall_train/{wildcards.name}.tsv"
        " --out results/recall/models/{wildcards.name} &> {log}"


# takes: results/recall/models/*/ of a task
# makes: results/recall/probes/{name}/ metrics.csv, slices.csv, spectra.csv; a name is a task


rule recall_probe:
    input:
        code("recall_probe"),
        lambda wildcards: expand(
            "results/recall/models/{name}/{file}",
            name=CONFIG.recall.trained_in(wildcards.name),
            file=[*TRAINED[:2], "metrics.csv", "moments.safetensors"],
        ),
    output:
        multiext(
            "results/recall/probes/{name}/", "metrics.csv", "slices.csv", "spectra.csv"
        ),
    log:
        "results/logs/recall_probe/{name}.log",
    benchmark:
        "results/benchmarks/recall_probe/{name}.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: slots()
    resources:
        mem_mb=growing(1500),
        runtime=minutes("recall_probe"),
        gpu=GPUS,
    params:
        recipe=recipe(CONFIG.recall.probes()),
    shell:
        'python "$NORMSCOPE/scripts/recall_probe.py" --recipe {params.recipe:q} --threads 1'
        " --models results/recall/models"
        " --out results/recall/probes/{wildcards.name} &> {log}"


# takes: results/recall/probes/*/, and the curves of results/recall/models/*/
# makes: results/recall/tables/


rule recall_tables:
    input:
        code("recall_tables"),
        expand(
            "results/recall/probes/{name}/{table}.csv",
            name=CONFIG.recall.probes(),
            table=["metrics", "slices", "spectra"],
        ),
        expand(
            "results/recall/models/{name}/curves.csv", name=CONFIG.recall.trainings()
        ),
    output:
        tables("recall"),
    log:
        "results/logs/recall_tables.log",
    benchmark:
        "results/benchmarks/recall_tables.tsv"
    conda:
        "../envs/normscope.yaml"
    params:
        recipe=recipe(CONFIG.recall.tabulation(CONFIG.settings)),
    shell:
        'python "$NORMSCOPE/scripts/recall_tables.py" --recipe {params.recipe:q}'
        " --models results/recall/models"
        " --probes results/recall/probes --out results/recall/tables &> {log}"
