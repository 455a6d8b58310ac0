# takes: results/dataset/
# makes: results/runs/{arm}-{placement}-{seed}/ model.safetensors, config.json, curve.csv, metrics.json
#        (links into store/); results/checkpoints/ while a run is unfinished


rule train:
    input:
        code("train"),
        "constraints.txt",
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
    output:
        multiext(
            "results/runs/{arm}-{placement}-{seed}/",
            "model.safetensors",
            "config.json",
            "curve.csv",
            "metrics.json",
        ),
    params:
        run=run_flags,
    cache: "omit-software"
    log:
        "results/logs/train/{arm}-{placement}-{seed}.log",
    # no benchmark: Snakemake refuses it for cached rules, so the script writes its own
    threads: 1
    resources:
        mem_mb=1500,
        runtime=120,
    shell:
        "{PYTHON} scripts/train.py {params.run} --threads {threads} --data results/dataset"
        " --checkpoints results/checkpoints/{wildcards.arm}-{wildcards.placement}-{wildcards.seed}"
        " --timing results/benchmarks/train/{wildcards.arm}-{wildcards.placement}-{wildcards.seed}.tsv"
        " --out results/runs/{wildcards.arm}-{wildcards.placement}-{wildcards.seed} &> {log}"


# takes: results/runs/*/
# makes: results/tables/ runs.csv, curves.csv, arms.csv


rule runs:
    input:
        code("runs"),
        metrics=of_runs("results/runs/{run}/metrics.json"),
        curves=of_runs("results/runs/{run}/curve.csv"),
    output:
        multiext("results/tables/", "runs.csv", "curves.csv", "arms.csv"),
    params:
        baseline=BASELINE,
        level=CONFIG.level,
    log:
        "results/logs/runs.log",
    benchmark:
        "results/benchmarks/runs.tsv"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "{PYTHON} scripts/runs.py {input.metrics} --baseline {params.baseline}"
        " --level {params.level} --out results/tables &> {log}"
