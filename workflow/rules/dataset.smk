# takes: the corpus from the first source that has it, or a nanoGPT-format directory
# makes: results/dataset/ train.bin, val.bin, meta.pkl as nanoGPT writes them, and meta.json


GIVEN = Given(sources=CONFIG.dataset.sources, context=CONFIG.longest_context)
check_corpus(CONFIG)


rule dataset:
    input:
        code("dataset"),
        nanogpt_files(CONFIG.dataset.directory),
        # which source has the text decides nothing, as its hash does
        given=ancient(recorded("corpus.json", GIVEN.model_dump_json())),
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
        " --given {input.given} --out results/dataset &> {log}"
