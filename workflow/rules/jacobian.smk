# takes: results/dataset/
# makes: results/jacobian/models/{name}/ as main_train; a name is {protocol}-{arm}-{attention}-
#        {feedback}-{norm_backward}-{surrogates_in}-{share}-{penalty}-{learning rate}-{first seed}


use rule main_train as jacobian_train with:
    output:
        multiext("results/jacobian/models/{name}/", *TRAINED),
    log:
        "results/logs/jacobian_train/{name}.log",
    resources:
        mem_mb=stack_mb("jacobian"),
        runtime=minutes("jacobian_train"),
        gpu=GPUS,
    params:
        recipe=recipe(CONFIG.jacobian.trainings()),
        study="jacobian",


# takes: results/jacobian/models/{name}/ with an exact backward pass and no penalty, results/dataset/
# makes: results/jacobian/probes/{name}/ layers.csv, gradients.csv


rule jacobian_probe:
    input:
        code("jacobian_probe"),
        multiext("results/dataset/", "val.bin", "train.bin", "meta.pkl"),
        probed("jacobian"),
    output:
        multiext("results/jacobian/probes/{name}/", "layers.csv", "gradients.csv"),
    log:
        "results/logs/jacobian_probe/{name}.log",
    benchmark:
        "results/benchmarks/jacobian_probe/{name}.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: slots()
    resources:
        mem_mb=growing(1500),
        runtime=minutes("jacobian_probe"),
        gpu=GPUS,
    params:
        recipe=recipe(CONFIG.jacobian.probes()),
    shell:
        'python "$NORMSCOPE/scripts/jacobian_probe.py" --recipe {params.recipe:q} --threads 1'
        " --models results/jacobian/models/{wildcards.name} --data results/dataset"
        " --out results/jacobian/probes/{wildcards.name} &> {log}"


# takes: results/jacobian/probes/*/, and losses and curves of results/jacobian/models/*/
# makes: results/jacobian/tables/


rule jacobian_tables:
    input:
        code("jacobian_tables"),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
        expand(
            "results/jacobian/probes/{name}/{table}.csv",
            name=CONFIG.jacobian.probes(),
            table=["layers", "gradients"],
        ),
        expand(
            "results/jacobian/models/{name}/{table}.csv",
            name=CONFIG.jacobian.trainings(),
            table=["metrics", "curves"],
        ),
    output:
        tables("jacobian"),
    log:
        "results/logs/jacobian_tables.log",
    benchmark:
        "results/benchmarks/jacobian_tables.tsv"
    conda:
        "../envs/normscope.yaml"
    params:
        recipe=recipe(CONFIG.jacobian.tabulation(CONFIG.settings)),
    shell:
        'python "$NORMSCOPE/scripts/jacobian_tables.py" --recipe {params.recipe:q}'
        " --models results/jacobian/models --probes results/jacobian/probes"
        " --data results/dataset --out results/jacobian/tables &> {log}"
