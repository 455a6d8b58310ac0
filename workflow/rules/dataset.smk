# reads:  the corpus from the first source that has it, or a nanoGPT-format directory
# writes: results/dataset/ with train.bin, val.bin and meta.pkl in nanoGPT's format, and meta.json


GIVEN = Given(sources=CONFIG.dataset.sources, context=CONFIG.longest_context)
MADE = Path("results/dataset/meta.json")
reported(check_known_length, CONFIG.dataset.decides, MADE, CONFIG.longest_context)


rule dataset:
    input:
        code("dataset"),
        nanogpt_files(CONFIG.dataset.directory),
        # the source of the text does not matter, because the text is identified by its hash
        given=ancient(recorded("corpus.json", GIVEN.model_dump_json())),
    output:
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl", "meta.json"),
    log:
        "results/logs/dataset.log",
    benchmark:
        "results/benchmarks/dataset.tsv"
    priority: FIRST
    conda:
        "../envs/normscope.yaml"
    params:
        recipe=recipe(CONFIG.dataset.decides),
    shell:
        'python "$NORMSCOPE/scripts/dataset.py" --recipe {params.recipe:q}'
        " --given {input.given} --out results/dataset &> {log}"
