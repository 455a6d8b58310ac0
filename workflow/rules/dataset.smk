# reads:  the corpus from the first source that has it, or a nanoGPT-format directory
# writes: results/dataset/ with train.bin, val.bin and meta.pkl in nanoGPT's format, and meta.json;
#         results/dataset/{name}/ with the same files of another text


GIVEN = {text: sources_file(text, source) for text, source in CONFIG.every_text.items()}


rule dataset:
    input:
        code("dataset"),
        nanogpt_files(DATASET),
        # the source of the text does not matter, because the text is identified by its hash
        given=ancient(GIVEN[DATASET]),
    output:
        multiext("results/dataset/", *TEXT_FILES),
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


rule text:
    input:
        code("dataset"),
        lambda wildcards: nanogpt_files(wildcards.name),
        given=ancient(lambda wildcards: GIVEN[wildcards.name]),
    output:
        multiext("results/dataset/{name}/", *TEXT_FILES),
    log:
        "results/logs/text/{name}.log",
    benchmark:
        "results/benchmarks/text/{name}.tsv"
    conda:
        "../envs/normscope.yaml"
    params:
        recipe=recipe({name: text.decides for name, text in CONFIG.texts.items()}),
    shell:
        'python "$NORMSCOPE/scripts/dataset.py" --recipe {params.recipe:q}'
        " --given {input.given} --out results/dataset/{wildcards.name} &> {log}"
