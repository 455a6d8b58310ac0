# reads:  results/dataset/, src/normscope/studies/card/; the code of custom norms
# writes: results/card/ with models/{name}/, probes/{name}/, tables/, speed/ (of this machine), and for each norm
#         {norm}/ with card.html and card.json. Nothing here is a part of the paper

CARD = CONFIG.card
CORPUS = [f"{corpus(DATASET)}/{name}" for name in TOKENS]
CARD_MODELS = CARD_FILES = []

if CARD is not None:
    CARD_TABLES = [f"results/card/tables/{name}.csv" for name in CARD.TABLES]
    CARD_MODELS = [
        f"results/card/models/{name}/{file}"
        for name in CARD.sweeps()
        for file in CARD.TRAINED
    ]
    CARD_PROBES = [
        f"results/card/probes/{name}/{table}.csv"
        for name in CARD.probes()
        for table in CARD.PROBED
    ]
    CARD_FILES = [*TEXTS, *CARD_MODELS, *CARD_PROBES, *CARD_TABLES]

    rule card_train:
        input:
            code("sweep"),
            CORPUS,
        output:
            multiext("results/card/models/{name}/", *CARD.TRAINED),
        log:
            "results/logs/card_train/{name}.log",
        cache: "omit-software"
        priority: flops("card_train")
        # no benchmark: Snakemake refuses it for cached rules, so the script writes one
        conda:
            "../envs/normscope.yaml"
        threads: threads_of_training()
        resources:
            mem_mb=per_attempt(1500),
            runtime=minutes("card_train"),
            gpu=GPUS,
        params:
            recipe=recipe(CARD.sweeps()),
        shell:
            'python "$NORMSCOPE/scripts/sweep.py" --recipe {params.recipe:q} --threads 1'
            " --data results/dataset --checkpoints results/card/checkpoints/{wildcards.name}"
            ' --store "$SNAKEMAKE_OUTPUT_CACHE"'
            " --timing results/benchmarks/card_train/{wildcards.name}.tsv"
            " --out results/card/models/{wildcards.name} &> {log}"

    rule card_probe:
        input:
            code("probe", "card"),
            CORPUS,
            lambda wildcards: [
                f"results/card/models/{wildcards.name}/{file}"
                for file in CARD.PROBE_READS
            ],
        output:
            multiext(
                "results/card/probes/{name}/",
                *(f"{table}.csv" for table in CARD.PROBED),
            ),
        log:
            "results/logs/card_probe/{name}.log",
        benchmark:
            "results/benchmarks/card_probe/{name}.tsv"
        conda:
            "../envs/normscope.yaml"
        threads: threads_of_training()
        resources:
            mem_mb=per_attempt(2000),
            runtime=per_attempt(30),
            gpu=GPUS,
        params:
            recipe=recipe(CARD.probes()),
        shell:
            'python "$NORMSCOPE/scripts/probe.py" card --recipe {params.recipe:q} --threads 1'
            " --data results/dataset --models results/card/models --name {wildcards.name}"
            " --out results/card/probes/{wildcards.name} &> {log}"

    rule card_tables:
        input:
            code("make_tables", "card", "tabulate"),
            CORPUS,
            [
                f"results/card/models/{name}/{file}"
                for name in CARD.sweeps()
                for file in ("metrics.csv", "pilot.csv")
            ],
            CARD_PROBES,
        output:
            CARD_TABLES,
        log:
            "results/logs/card_tables.log",
        benchmark:
            "results/benchmarks/card_tables.tsv"
        conda:
            "../envs/normscope.yaml"
        params:
            recipe=recipe(CARD.tabulation(CONFIG.level)),
        shell:
            'python "$NORMSCOPE/scripts/make_tables.py" card --recipe {params.recipe:q}'
            " --models results/card/models --probes results/card/probes --data results/dataset"
            " --out results/card/tables &> {log}"

    # it takes all cores, so that nothing else runs while it measures this machine
    rule card_speed:
        input:
            code("time_norms"),
        output:
            "results/card/speed/speed.csv",
        log:
            "results/logs/card_speed.log",
        benchmark:
            "results/benchmarks/card_speed.tsv"
        conda:
            "../envs/normscope.yaml"
        threads: workflow.cores
        resources:
            gpu=GPUS,
        params:
            recipe=recipe(CARD.costs()),
            device=DEVICE,
        shell:
            'python "$NORMSCOPE/scripts/time_norms.py" --recipe {params.recipe:q}'
            " --device {params.device} --out results/card/speed &> {log}"

    rule card_page:
        input:
            code("card"),
            CARD_TABLES,
            project("src/normscope/studies/card/card.md"),
            speed=rules.card_speed.output,
            dataset="results/dataset/meta.json",
            templates=TEMPLATES[:2],
        output:
            multiext("results/card/{norm}/card", ".html", ".json"),
        log:
            "results/logs/card_page/{norm}.log",
        conda:
            "../envs/normscope.yaml"
        params:
            config=unquoted(CARD.model_dump_json()),
            look=unquoted(json.dumps(LOOK)),
        shell:
            'python "$NORMSCOPE/scripts/card.py" --config {params.config:q}'
            " --norm {wildcards.norm} --tables results/card/tables --speed {input.speed}"
            " --look {params.look:q} --dataset {input.dataset}"
            ' --templates "$NORMSCOPE/workflow/report" --out results/card/{wildcards.norm} &> {log}'
