# takes: results/dataset/, the baseline's models in results/main/models/
# makes: results/textbook/tables/, what a textbook says of LayerNorm and BatchNorm, measured


rule textbook_tables:
    input:
        code("textbook_tables"),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
        expand(
            "results/main/models/{name}/{file}",
            name=CONFIG.settings.baseline,
            file=["config.json", "models.safetensors"],
        ),
    output:
        tables("textbook"),
    log:
        "results/logs/textbook_tables.log",
    benchmark:
        "results/benchmarks/textbook_tables.tsv"
    conda:
        "../envs/normscope.yaml"
    resources:
        mem_mb=1500,
    params:
        recipe=recipe(CONFIG.textbook.tabulation(CONFIG.settings)),
    shell:
        'python "$NORMSCOPE/scripts/textbook_tables.py" --recipe {params.recipe:q} --threads 1'
        " --models results/main/models --data results/dataset --out results/textbook/tables &> {log}"
