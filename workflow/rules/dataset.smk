# reads:  the corpus from the first source that has it, or a nanoGPT-format directory
# writes: results/dataset/ with train.bin, val.bin and meta.pkl in nanoGPT's format, and meta.json


SOURCES = json.dumps([source.model_dump() for source in CONFIG.dataset.sources])


rule dataset:
    input:
        code("dataset"),
        nanogpt_files(CONFIG.dataset.directory),
        # the source of the text does not matter, because the text is identified by its hash
        sources=ancient(recorded("sources.json", SOURCES)),
    output:
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl", "meta.json"),
    log:
        "results/logs/dataset.log",
    benchmark:
        "results/benchmarks/dataset.tsv"
    conda:
        "../envs/normscope.yaml"
    params:
        recipe=recipe(CONFIG.dataset.decides),
    shell:
        'python "$NORMSCOPE/scripts/dataset.py" --recipe {params.recipe:q}'
        " --sources {input.sources} --out results/dataset &> {log}"
