# takes: results/runs/{cell}-{seed}/ of the cells with an exact backward pass, results/dataset/
# makes: results/jacobian/{cell}/ layers.csv, gradients.csv; a cell is
#        {protocol}-{arm}-{attention}-{feedback}-{norm_backward}-{learning rate}


rule decompose:
    input:
        code("decompose"),
        multiext("results/dataset/", "val.bin", "train.bin", "meta.pkl"),
        of_cell("results/runs/{cell}-{seed}/config.json", JACOBIAN_CELLS),
        of_cell("results/runs/{cell}-{seed}/metrics.json", JACOBIAN_CELLS),
        models=of_cell("results/runs/{cell}-{seed}/model.safetensors", JACOBIAN_CELLS),
    output:
        multiext("results/jacobian/{cell}/", "layers.csv", "gradients.csv"),
    log:
        "results/logs/decompose/{cell}.log",
    benchmark:
        "results/benchmarks/decompose/{cell}.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: slots()
    resources:
        mem_mb=growing(1500),
        runtime=minutes("decompose"),
    params:
        pins=pins("decompose"),
        seeds=seeds_of(JACOBIAN_CELLS),
        windows=CONFIG.jacobian.windows,
    shell:
        "python scripts/decompose.py {input.models} --data results/dataset"
        " --windows {params.windows} --threads 1 --out results/jacobian/{wildcards.cell} &> {log}"


# takes: results/jacobian/*/, and the losses of all of its runs in results/runs/
# makes: results/jacobian/ layers.csv, gradients.csv (a row a layer or surrogate of every model),
#        layers_by_cell.csv (with intervals), losses.csv (a row a model), chosen.csv (at the best rate),
#        costs.csv (of each surrogate), expected.csv and predictions.csv (what predicts them)


rule jacobian:
    input:
        code("jacobian"),
        multiext("results/dataset/", "train.bin", "val.bin", "meta.pkl"),
        expand(
            "results/jacobian/{cell}/{name}.csv",
            cell=JACOBIAN_CELLS,
            name=["layers", "gradients"],
        ),
        expand(
            "results/runs/{run}/metrics.json",
            run=CONFIG.jacobian.trained(),
        ),
    output:
        multiext(
            "results/jacobian/",
            "layers.csv",
            "gradients.csv",
            "layers_by_cell.csv",
            "losses.csv",
            "chosen.csv",
            "costs.csv",
            "expected.csv",
            "predictions.csv",
        ),
    log:
        "results/logs/jacobian.log",
    benchmark:
        "results/benchmarks/jacobian.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("jacobian"),
        cells=verbatim(json.dumps(CONFIG.jacobian.cells())),
        judged=JUDGED,
    shell:
        "python scripts/jacobian.py --cells {params.cells:q} --runs results/runs"
        " --data results/dataset {params.judged} --out results/jacobian &> {log}"
