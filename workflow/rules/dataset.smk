# reads:  each text from the first source that has it, or a nanoGPT-format directory
# writes: results/dataset/ with train.bin, val.bin and meta.pkl in nanoGPT's format, and meta.json;
#         results/dataset/<text>/ with the same files of another text, if a job reads it


for text, part in CONFIG.every_text.items():
    suffix = "" if text == DATASET else f"_{text}"
    folder = corpus(text)
    reported(
        check_known_length,
        part.decides,
        Path(folder, "meta.json"),
        CONFIG.longest_context,
    )

    rule:
        name:
            f"dataset{suffix}"
        input:
            code("dataset"),
            nanogpt_files(part.directory, folder),
            # the source of the text does not matter, because the text is identified by its hash
            given=ancient(
                recorded(
                    f"corpus{suffix}.json",
                    Given(
                        sources=part.sources, context=CONFIG.longest_context
                    ).model_dump_json(),
                )
            ),
        output:
            multiext(f"{folder}/", "train.bin", "val.bin", "meta.pkl", "meta.json"),
        log:
            f"results/logs/dataset{suffix}.log",
        benchmark:
            f"results/benchmarks/dataset{suffix}.tsv"
        conda:
            "../envs/normscope.yaml"
        params:
            recipe=recipe(part.decides),
        shell:
            'python "$NORMSCOPE/scripts/dataset.py" --recipe {params.recipe:q}'
            f" --given {{input.given}} --out {folder} &> {{log}}"
