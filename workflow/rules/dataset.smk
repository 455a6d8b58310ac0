# reads:  each text from the first source that has it, or a nanoGPT-format directory
# writes: results/dataset/ with train.bin, val.bin and meta.pkl in nanoGPT's format, and meta.json;
#         results/dataset/{name}/ with the same files of another text

for text, source in CONFIG.every_text.items():

    rule:
        name:
            "dataset" if text == DATASET else f"text_{text}"
        input:
            code("dataset"),
            nanogpt_files(text),
            # the source of the text does not matter, because the text is identified by its hash
            given=ancient(sources_file(text, source)),
        output:
            multiext(f"{corpus(text)}/", *TEXT_FILES),
        log:
            f"results/logs/dataset/{text}.log",
        priority: FIRST
        conda:
            "../envs/normscope.yaml"
        params:
            recipe=recipe(source.decides),
            folder="" if text == DATASET else text,
        shell:
            'python "$NORMSCOPE/scripts/dataset.py" --recipe {params.recipe:q}'
            " --given {input.given} --out results/dataset/{params.folder} &> {log}"
