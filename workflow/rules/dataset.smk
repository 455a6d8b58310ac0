# takes: the corpus from the first source that has it, or a nanoGPT-format directory
# makes: results/dataset/ train.bin, val.bin, meta.pkl as nanoGPT writes them, and meta.json


rule dataset:
    input:
        code("dataset"),
        DATASET_FILES,
    output:
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl", "meta.json"),
    log:
        "results/logs/dataset.log",
    benchmark:
        "results/benchmarks/dataset.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("dataset"),
        origin=verbatim(flags(CONFIG.dataset.decides.items())),
    # sources decide nothing, as the hash does: they come by the environment, not as a parameter
    shell:
        'python scripts/dataset.py {params.origin} --sources "$NORMSCOPE_SOURCES"'
        " --out results/dataset &> {log}"
