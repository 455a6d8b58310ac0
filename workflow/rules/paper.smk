# takes: results/tables/*.csv, the captions of results/paper/figures/, data/published.csv
# makes: results/paper/ summary.md, tables/*.tex, numbers.tex, manifest.json


rule summary:
    input:
        code("summary"),
        expand("results/paper/figures/{figure}.txt", figure=FIGURES),
        runs="results/tables/runs.csv",
        arms="results/tables/arms.csv",
        gains="results/tables/gain_by_arm.csv",
        cells="results/tables/recall_cells.csv",
        best="results/tables/recall_best.csv",
        factors="results/tables/factors.csv",
        jacobian=expand(
            "results/jacobian/{table}.csv",
            table="layers layers_by_cell chosen costs expected predictions".split(),
        ),
        pretrained=expand(
            "results/pretrained/{table}.csv",
            table="models by_model by_norm twins h25 sensitivity".split(),
        ),
        depth=expand(
            "results/depth/{table}.csv",
            table="rates by_shape losses trainability".split(),
        ),
        textbook=expand(
            "results/textbook/{table}.csv",
            table="scratch affine sharing batches wild_summary undo".split(),
        ),
        references_of_gain="data/reference_gains.csv",
        stream="results/tables/gain.csv",
        published="data/published.csv",
        references="data/nanogpt_cpu.json",
        template="workflow/report/summary.md",
        dataset="results/dataset/meta.json",
        config=f"results/runs/{next(iter(RUNS))}/config.json",
    output:
        "results/paper/summary.md",
    log:
        "results/logs/summary.log",
    benchmark:
        "results/benchmarks/summary.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        baseline=BASELINE,
        level=CONFIG.level,
        recall=CONFIG.recall.model_dump_json(),
        grid=CONFIG.jacobian.model_dump_json(),
        depth=CONFIG.depth.model_dump_json(),
    shell:
        "python scripts/summary.py --runs {input.runs} --arms {input.arms} --gains {input.gains}"
        " --cells {input.cells} --best {input.best} --factors {input.factors} --recall {params.recall:q}"
        " --jacobian results/jacobian --grid {params.grid:q}"
        " --depth results/depth --depth-grid {params.depth:q} --textbook results/textbook"
        " --pretrained results/pretrained --references-of-gain {input.references_of_gain}"
        " --stream {input.stream} --published {input.published} --references {input.references}"
        " --template {input.template} --dataset {input.dataset} --config {input.config}"
        " --figures results/paper/figures --baseline {params.baseline} --level {params.level}"
        " --out {output} &> {log}"


rule latex:
    input:
        code("latex"),
        arms="results/tables/arms.csv",
        gains="results/tables/gain_by_arm.csv",
        cells="results/tables/recall_cells.csv",
        factors="results/tables/factors.csv",
        jacobian=expand(
            "results/jacobian/{table}.csv", table=["layers_by_cell", "costs"]
        ),
        depth=expand("results/depth/{table}.csv", table=["by_shape", "trainability"]),
        scratch="results/textbook/scratch.csv",
        pretrained=expand(
            "results/pretrained/{table}.csv",
            table="by_model by_norm h25 twins sensitivity".split(),
        ),
    output:
        "results/paper/numbers.tex",
        multiext(
            "results/paper/tables/",
            "loss.tex",
            "gain.tex",
            "factors.tex",
            "jacobian.tex",
            "surrogates.tex",
            "depth.tex",
            "trainability.tex",
            "scratch.tex",
            "pretrained.tex",
            "norms.tex",
            "h25.tex",
            "twins.tex",
            "sensitivity.tex",
        ),
        expand("results/paper/tables/recall_{task}.tex", task=CONFIG.recall.tasks),
    log:
        "results/logs/latex.log",
    benchmark:
        "results/benchmarks/latex.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        published=CONFIG.jacobian.published,
        corrected=CONFIG.jacobian.corrected,
    shell:
        "python scripts/latex.py --arms {input.arms} --gains {input.gains} --cells {input.cells}"
        " --factors {input.factors} --jacobian results/jacobian --pretrained results/pretrained"
        " --depth results/depth --textbook results/textbook --published {params.published} --corrected {params.corrected}"
        " --out results/paper &> {log}"


rule manifest:
    input:
        code("manifest"),
        SOURCE_FILES,
        expand("results/runs/{run}/config.json", run=CONFIG.jacobian.trained()),
        runs=of_runs("results/runs/{run}/config.json"),
        recall=expand("results/recall_runs/{run}/config.json", run=RECALL_RUNS),
        depth=expand("results/depth/{shape}/config.json", shape=SHAPES),
        pretrained=of_models("results/pretrained/{model}/model.json"),
        dataset="results/dataset/meta.json",
    output:
        "results/paper/manifest.json",
    log:
        "results/logs/manifest.log",
    benchmark:
        "results/benchmarks/manifest.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        config=CONFIG.model_dump_json(exclude={"dataset"}),
        sources=",".join(SOURCE_FILES),
    shell:
        "python scripts/manifest.py {input.runs} --recall results/recall_runs --jacobian results/runs"
        " --depth results/depth"
        " --pretrained results/pretrained --config {params.config:q}"
        " --dataset {input.dataset} --sources {params.sources} --out {output} &> {log}"
