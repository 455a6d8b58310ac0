# takes: results/dataset/
# makes: results/depth/models/{name}/ as main_train; a name is {arm}-{placement}-{residual or plain}-
#        {init}-{depth}-{learning rate}-{steps of warm-up}-{first seed}


use rule main_train as depth_train with:
    output:
        multiext("results/depth/models/{name}/", *TRAINED),
    log:
        "results/logs/depth_train/{name}.log",
    resources:
        mem_mb=stack_mb("depth"),
        runtime=minutes("depth_train"),
        gpu=GPUS,
    params:
        recipe=recipe(CONFIG.depth.trainings()),
        study="depth",


# takes: results/dataset/, the kept models of results/depth/models/*/
# makes: results/depth/probes/{name}/blocks.csv, a row a block of every model; a name is a placement


rule depth_probe:
    input:
        code("depth_probe"),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
        lambda wildcards: expand(
            "results/depth/models/{name}/{file}",
            name=CONFIG.depth.trained_in(wildcards.name),
            file=["models.safetensors", "config.json", "metrics.csv"],
        ),
    output:
        "results/depth/probes/{name}/blocks.csv",
    log:
        "results/logs/depth_probe/{name}.log",
    benchmark:
        "results/benchmarks/depth_probe/{name}.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: slots()
    resources:
        mem_mb=growing(2000),
        runtime=minutes("depth_probe"),
        gpu=GPUS,
    params:
        recipe=recipe(CONFIG.depth.probes()),
    shell:
        'python "$NORMSCOPE/scripts/depth_probe.py" --recipe {params.recipe:q} --threads 1'
        " --models results/depth/models --data results/dataset"
        " --out results/depth/probes/{wildcards.name} &> {log}"


# takes: results/depth/probes/*/, and the losses of results/depth/models/*/
# makes: results/depth/tables/


rule depth_tables:
    input:
        code("depth_tables"),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
        expand("results/depth/probes/{name}/blocks.csv", name=CONFIG.depth.probes()),
        expand("results/depth/models/{name}/metrics.csv", name=CONFIG.depth.trainings()),
    output:
        tables("depth"),
    log:
        "results/logs/depth_tables.log",
    benchmark:
        "results/benchmarks/depth_tables.tsv"
    conda:
        "../envs/normscope.yaml"
    params:
        recipe=recipe(CONFIG.depth.tabulation(CONFIG.settings)),
    shell:
        'python "$NORMSCOPE/scripts/depth_tables.py" --recipe {params.recipe:q}'
        " --models results/depth/models"
        " --probes results/depth/probes --data results/dataset --out results/depth/tables &> {log}"
