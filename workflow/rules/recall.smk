# takes: nothing but the configuration: its data are drawn
# makes: results/recall_runs/{cell}-{seed}/ model.safetensors, config.json, curve.csv, metrics.json
#        (links into store/); a cell is {task}-{arm}-{learning rate}


rule recall:
    input:
        code("recall"),
    output:
        multiext(
            "results/recall_runs/{cell}-{seed}/",
            "model.safetensors",
            "config.json",
            "curve.csv",
            "metrics.json",
            "SHA256SUMS",
        ),
    log:
        "results/logs/recall/{cell}-{seed}.log",
    cache: "omit-software"
    # no benchmark: Snakemake refuses it for cached rules, so the script writes its own
    conda:
        "../envs/normscope.yaml"
    threads: slots()
    resources:
        mem_mb=growing(1000),
        runtime=minutes("recall"),
    params:
        pins=pins("recall"),
        run=recall_flags,
    shell:
        "python scripts/recall.py {params.run} --threads 1"
        " --checkpoints results/checkpoints/{wildcards.cell}-{wildcards.seed}"
        ' --store "$SNAKEMAKE_OUTPUT_CACHE"'
        " --timing results/benchmarks/recall/{wildcards.cell}-{wildcards.seed}.tsv"
        " --out results/recall_runs/{wildcards.cell}-{wildcards.seed} &> {log}"


# takes: results/recall_runs/{cell}-*/
# makes: results/recall/{cell}/ metrics.csv, slices.csv, spectra.csv


rule probe:
    input:
        code("probe"),
        of_cell("results/recall_runs/{cell}-{seed}/config.json", CELLS),
        of_cell("results/recall_runs/{cell}-{seed}/metrics.json", CELLS),
        models=of_cell("results/recall_runs/{cell}-{seed}/model.safetensors", CELLS),
    output:
        multiext("results/recall/{cell}/", "metrics.csv", "slices.csv", "spectra.csv"),
    log:
        "results/logs/probe/{cell}.log",
    benchmark:
        "results/benchmarks/probe/{cell}.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: slots()
    resources:
        mem_mb=growing(1500),
        runtime=minutes("probe"),
    params:
        pins=pins("probe"),
        seeds=seeds_of(CELLS),
        directions=CONFIG.recall.directions,
    shell:
        "python scripts/probe.py {input.models} --directions {params.directions} --threads 1"
        " --out results/recall/{wildcards.cell} &> {log}"


# takes: results/recall/*/, and the curves of results/recall_runs/*/
# makes: results/tables/ recall.csv (a row a model), recall_cells.csv (with intervals),
#        recall_best.csv (learning rates), recall_curves.csv, recall_slices.csv, recall_spectra.csv, factors.csv (effects)


rule decisive:
    input:
        code("decisive"),
        expand(
            "results/recall/{cell}/{name}.csv",
            cell=CELLS,
            name=["metrics", "slices", "spectra"],
        ),
        expand("results/recall_runs/{run}/curve.csv", run=RECALL_RUNS),
    output:
        multiext(
            "results/tables/",
            "recall.csv",
            "recall_cells.csv",
            "recall_best.csv",
            "recall_curves.csv",
            "recall_slices.csv",
            "recall_spectra.csv",
            "factors.csv",
        ),
    log:
        "results/logs/decisive.log",
    benchmark:
        "results/benchmarks/decisive.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("decisive"),
        cells=expand("results/recall/{cell}", cell=CELLS),
        corrected=flags(CONFIG.recall.corrected),
        level=CONFIG.level,
    shell:
        "python scripts/decisive.py {params.cells} --runs results/recall_runs {params.corrected}"
        " --level {params.level} --out results/tables &> {log}"
