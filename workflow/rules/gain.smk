# takes: results/runs/{run}/, results/dataset/
# makes: results/stream/{run}.csv, norms and log-gains of the residual stream per position


rule stream:
    input:
        code("stream"),
        multiext("results/dataset/", "val.bin", "train.bin", "meta.pkl"),
        multiext("results/runs/{run}/", model="model.safetensors", config="config.json"),
    output:
        "results/stream/{run}.csv",
    log:
        "results/logs/stream/{run}.log",
    benchmark:
        "results/benchmarks/stream/{run}.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=growing(1500),
        runtime=growing(5),
    params:
        pins=pins("stream"),
        windows=CONFIG.gain.windows,
    shell:
        "python scripts/stream.py --model {input.model} --data results/dataset"
        " --windows {params.windows} --threads {threads} --out {output} &> {log}"


# takes: results/stream/*.csv, and from results/tables/runs.csv which runs diverged
# makes: results/tables/ gain.csv (all runs), gain_by_depth.csv, gain_by_arm.csv (with intervals)


rule gain:
    input:
        code("gain"),
        streams=of_runs("results/stream/{run}.csv"),
        runs="results/tables/runs.csv",
    output:
        multiext("results/tables/", "gain.csv", "gain_by_depth.csv", "gain_by_arm.csv"),
    log:
        "results/logs/gain.log",
    benchmark:
        "results/benchmarks/gain.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("gain"),
        order=list(RUNS),
        level=CONFIG.level,
    shell:
        "python scripts/gain.py {input.streams} --runs {input.runs} --level {params.level}"
        " --out results/tables &> {log}"
