# takes: results/dataset/
# makes: results/runs/{run}/ model.safetensors, config.json, curve.csv, metrics.json, SHA256SUMS
#        (links into store/); results/checkpoints/ while a run is unfinished


rule train:
    input:
        code("train"),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
    output:
        multiext(
            "results/runs/{run}/",
            "model.safetensors",
            "config.json",
            "curve.csv",
            "metrics.json",
            "SHA256SUMS",
        ),
    log:
        "results/logs/train/{run}.log",
    cache: "omit-software"
    # no benchmark: Snakemake refuses it for cached rules, so the script writes its own
    conda:
        "../envs/normscope.yaml"
    threads: slots()
    resources:
        mem_mb=growing(1500),
        runtime=minutes("train"),
    params:
        pins=pins("train"),
        run=run_flags,
    shell:
        "python scripts/train.py {params.run} --threads 1 --data results/dataset"
        " --checkpoints results/checkpoints/{wildcards.run}"
        ' --store "$SNAKEMAKE_OUTPUT_CACHE"'
        " --timing results/benchmarks/train/{wildcards.run}.tsv"
        " --out results/runs/{wildcards.run} &> {log}"


# takes: results/runs/*/
# makes: results/tables/ runs.csv, curves.csv, arms.csv


rule runs:
    input:
        code("runs"),
        metrics=of_runs("results/runs/{run}/metrics.json"),
        curves=of_runs("results/runs/{run}/curve.csv"),
    output:
        multiext("results/tables/", "runs.csv", "curves.csv", "arms.csv"),
    log:
        "results/logs/runs.log",
    benchmark:
        "results/benchmarks/runs.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("runs"),
        order=list(RUNS),  # of the rows: inputs are compared as a set
        baseline=BASELINE,
        level=CONFIG.level,
    shell:
        "python scripts/runs.py {input.metrics} --baseline {params.baseline}"
        " --level {params.level} --out results/tables &> {log}"
