# reads:  results/dataset/, and for the tables of some studies files of data/
# writes: results/<study>/ with models/{name}/, probes/{name}/ and tables/ for every study, as
#         src/normscope/studies/<study>/grid.py defines, with the names of the jobs. checkpoints/
#         exists while a training is unfinished

for study, part in JOBS.items():

    if part.trainings():

        rule:
            name:
                f"{study}_train"
            input:
                code("train", study),
                corpus_of(study, token_files) or [],
            output:
                multiext(f"results/{study}/models/{{name}}/", *part.STAGES.model_files),
            log:
                f"results/logs/{study}_train/{{name}}.log",
            cache: "omit-software"
            priority: flops(f"{study}_train")
            group:
                "train"
            # no benchmark: Snakemake refuses it for cached rules, so the script writes one
            conda:
                "../envs/normscope.yaml"
            resources:
                mem_mb=train_mb(part),
                runtime=minutes(f"{study}_train"),
                gpu=GPUS,
            params:
                recipe=recipe(part.trainings()),
                study=study,
                data=corpus_of(study, "--data {0[0]}".format),
            shell:
                'python "$NORMSCOPE/scripts/train.py" {params.study} --recipe {params.recipe:q}'
                " --threads 1 {params.data}"
                " --checkpoints results/{params.study}/checkpoints/{wildcards.name}"
                ' --store "$SNAKEMAKE_OUTPUT_CACHE"'
                " --timing results/benchmarks/{params.study}_train/{wildcards.name}.tsv"
                " --out results/{params.study}/models/{wildcards.name} &> {log}"

    if part.STAGES.probe_tables:

        rule:
            name:
                f"{study}_probe"
            input:
                code("probe", study),
                corpus_of(study, token_files) or [],
                probe_files(study),
            output:
                multiext(
                    f"results/{study}/probes/{{name}}/",
                    *(f"{table}.csv" for table in part.STAGES.probe_tables),
                ),
            log:
                f"results/logs/{study}_probe/{{name}}.log",
            benchmark:
                f"results/benchmarks/{study}_probe/{{name}}.tsv"
            priority: FIRST
            group:
                "probe"
            conda:
                "../envs/normscope.yaml"
            resources:
                mem_mb=per_attempt(2000),
                runtime=per_attempt(30),
                gpu=GPUS,
            params:
                recipe=recipe(part.probes()),
                study=study,
                data=corpus_of(study, "--data {0[0]}".format),
            shell:
                'python "$NORMSCOPE/scripts/probe.py" {params.study} --recipe {params.recipe:q}'
                " --threads 1 {params.data} --name {wildcards.name}"
                " --models results/{params.study}/models"
                " --out results/{params.study}/probes/{wildcards.name} &> {log}"

    rule:
        name:
            f"{study}_tables"
        input:
            code("make_tables", study, "tabulate"),
            corpora(study),
            table_inputs(study),
            list(study_files(study).values()),
        output:
            tables(study),
        log:
            f"results/logs/{study}_tables.log",
        benchmark:
            f"results/benchmarks/{study}_tables.tsv"
        conda:
            "../envs/normscope.yaml"
        resources:
            mem_mb=1500,
            runtime=20,
        params:
            recipe=recipe(part.tabulation(CONFIG.settings)),
            study=study,
            models=part.STAGES.models_of or study,
            data="--data results/dataset" if part.STAGES.reads_corpus else "",
            files=constant(json.dumps(study_files(study))),
        shell:
            'python "$NORMSCOPE/scripts/make_tables.py" {params.study} --recipe {params.recipe:q}'
            " --models results/{params.models}/models --probes results/{params.study}/probes"
            " {params.data} --files {params.files:q} --out results/{params.study}/tables &> {log}"
