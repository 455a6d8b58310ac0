# takes: results/dataset/
# makes: results/depth/{shape}/ models.safetensors, config.json, curves.csv, losses.csv (links into
#        store/); a shape is {arm}-{placement}-{residual or plain}-{init}-{depth}


rule ensemble:
    input:
        code("ensemble"),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
    output:
        multiext(
            "results/depth/{shape}/",
            "models.safetensors",
            "config.json",
            "curves.csv",
            "losses.csv",
            "SHA256SUMS",
        ),
    log:
        "results/logs/ensemble/{shape}.log",
    cache: "omit-software"
    # no benchmark: Snakemake refuses it for cached rules, so the script writes its own
    conda:
        "../envs/normscope.yaml"
    threads: slots()
    resources:
        mem_mb=growing(ensemble_mb),
        runtime=minutes("ensemble"),
    params:
        pins=pins("ensemble"),
        recipe=shape_json,
    shell:
        "python scripts/ensemble.py --recipe {params.recipe:q} --threads 1 --data results/dataset"
        " --checkpoints results/checkpoints/{wildcards.shape}"
        ' --store "$SNAKEMAKE_OUTPUT_CACHE"'
        " --timing results/benchmarks/ensemble/{wildcards.shape}.tsv"
        " --out results/depth/{wildcards.shape} &> {log}"


# takes: results/dataset/, the kept models of results/depth/{shape}/
# makes: results/depth/{place}/blocks.csv, a row a block of every model; a place is a placement


rule descend:
    input:
        code("descend"),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
        of_place("results/depth/{shape}/models.safetensors"),
        of_place("results/depth/{shape}/config.json"),
        of_place("results/depth/{shape}/losses.csv"),
    output:
        "results/depth/{place}/blocks.csv",
    log:
        "results/logs/descend/{place}.log",
    benchmark:
        "results/benchmarks/descend/{place}.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: slots()
    resources:
        mem_mb=growing(2000),
        runtime=minutes("descend"),
    params:
        pins=pins("descend"),
        place=place_json,
    shell:
        "python scripts/descend.py --place {params.place:q} --trained results/depth"
        " --data results/dataset --threads 1 --out {output} &> {log}"


# takes: results/depth/*/
# makes: results/depth/ blocks.csv and rates.csv (a row a block, a row a model), by_block.csv and
#        by_shape.csv (with intervals), losses.csv (a row a model), trainability.csv (with intervals)


rule depth:
    input:
        code("depth"),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
        expand("results/depth/{place}/blocks.csv", place=PLACES),
        expand("results/depth/{shape}/losses.csv", shape=SHAPES),
    output:
        multiext(
            "results/depth/",
            "blocks.csv",
            "rates.csv",
            "by_block.csv",
            "by_shape.csv",
            "losses.csv",
            "trainability.csv",
        ),
    log:
        "results/logs/depth.log",
    benchmark:
        "results/benchmarks/depth.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("depth"),
        grid=verbatim(CONFIG.depth.model_dump_json()),
        level=CONFIG.level,
    shell:
        "python scripts/depth.py --grid {params.grid:q} --data results/dataset"
        " --level {params.level} --out results/depth &> {log}"


# takes: results/dataset/, the baseline's models in results/runs/
# makes: results/textbook/*.csv, what a textbook says of LayerNorm and BatchNorm, measured


rule textbook:
    input:
        code("textbook"),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
        of_baseline("results/runs/{run}/config.json"),
        models=of_baseline("results/runs/{run}/model.safetensors"),
    output:
        multiext(
            "results/textbook/",
            "scratch.csv",
            "epsilon.csv",
            "affine.csv",
            "sharing.csv",
            "batches.csv",
            "wild.csv",
            "wild_summary.csv",
            "undo.csv",
        ),
    log:
        "results/logs/textbook.log",
    benchmark:
        "results/benchmarks/textbook.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        pins=pins("textbook"),
        order=of_baseline("{run}"),
        windows=CONFIG.gain.windows,
        level=CONFIG.level,
    shell:
        "python scripts/textbook.py {input.models} --data results/dataset --threads 1"
        " --windows {params.windows} --level {params.level} --out results/textbook &> {log}"
