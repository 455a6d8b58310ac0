# takes: results/tables/*.csv and those of every part, data/claims.yaml, data/published.csv,
#        the captions of results/paper/figures/
# makes: results/paper/ claims.json, frame.json (all that is printed), and of the frame alone
#        summary.md, summary.html, summary.pdf, tables/*.tex, numbers.tex, claims.tex, example.tex;
#        manifest.json


rule claims:
    input:
        code("claims"),
        claims="data/claims.yaml",
        tables=multiext("results/tables/", "runs.csv", "gain.csv", "recall.csv"),
        jacobian=expand(
            "results/jacobian/{table}.csv",
            table="layers layers_by_cell chosen costs expected predictions".split(),
        ),
        pretrained=expand(
            "results/pretrained/{table}.csv",
            table="by_model by_norm h25 h25_models sensitivity".split(),
        ),
        depth=expand("results/depth/{table}.csv", table=["rates", "losses"]),
        textbook=expand(
            "results/textbook/{table}.csv",
            table="scratch affine sharing batches wild_summary undo".split(),
        ),
        references="data/reference_gains.csv",
    output:
        "results/paper/claims.json",
    log:
        "results/logs/claims.log",
    benchmark:
        "results/benchmarks/claims.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("claims"),
        recall=verbatim(CONFIG.recall.model_dump_json()),
        grid=verbatim(CONFIG.jacobian.model_dump_json()),
        depth=verbatim(CONFIG.depth.model_dump_json()),
        judged=JUDGED,
    shell:
        "python scripts/claims.py --claims {input.claims} --tables results/tables"
        " --recall {params.recall:q} --jacobian results/jacobian --grid {params.grid:q}"
        " --depth results/depth --depth-grid {params.depth:q} --textbook results/textbook"
        " --pretrained results/pretrained --references {input.references}"
        " {params.judged} --out {output} &> {log}"


rule frame:
    input:
        code("frame"),
        expand("results/paper/figures/{figure}.txt", figure=FIGURES),
        claims="results/paper/claims.json",
        tables=multiext(
            "results/tables/",
            "runs.csv",
            "arms.csv",
            "gain_by_arm.csv",
            "recall_cells.csv",
            "recall_best.csv",
            "factors.csv",
        ),
        jacobian=expand(
            "results/jacobian/{table}.csv",
            table="layers layers_by_cell costs predictions".split(),
        ),
        pretrained=expand(
            "results/pretrained/{table}.csv",
            table="models by_model by_norm twins h25 sensitivity".split(),
        ),
        depth=expand("results/depth/{table}.csv", table=["by_shape", "trainability"]),
        textbook="results/textbook/scratch.csv",
        published="data/published.csv",
        references="data/nanogpt_cpu.json",
        dataset="results/dataset/meta.json",
        config=f"results/runs/{next(iter(RUNS))}/config.json",
    output:
        "results/paper/frame.json",
    log:
        "results/logs/frame.log",
    benchmark:
        "results/benchmarks/frame.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("frame"),
        baseline=BASELINE,
        judged=JUDGED,
        recall=verbatim(CONFIG.recall.model_dump_json()),
        grid=verbatim(CONFIG.jacobian.model_dump_json()),
        depth=verbatim(CONFIG.depth.model_dump_json()),
    shell:
        "python scripts/frame.py --claims {input.claims} --tables results/tables"
        " --recall {params.recall:q} --jacobian results/jacobian --grid {params.grid:q}"
        " --depth results/depth --depth-grid {params.depth:q} --textbook results/textbook"
        " --pretrained results/pretrained --published {input.published}"
        " --references {input.references} --dataset {input.dataset} --config {input.config}"
        " --figures results/paper/figures --baseline {params.baseline} {params.judged}"
        " --out {output} &> {log}"


rule summary:
    input:
        code("summary"),
        frame="results/paper/frame.json",
        template="workflow/report/summary.md",
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
        pins=pins("summary"),
    shell:
        "python scripts/summary.py --frame {input.frame} --template {input.template}"
        " --out {output} &> {log}"


rule latex:
    input:
        code("latex"),
        frame="results/paper/frame.json",
    output:
        multiext("results/paper/", "numbers.tex", "claims.tex", "example.tex"),
        multiext(
            "results/paper/tables/",
            "loss.tex",
            "gain.tex",
            "published.tex",
            "factors.tex",
            "best.tex",
            "jacobian.tex",
            "surrogates.tex",
            "predictions.tex",
            "depth.tex",
            "trainability.tex",
            "scratch.tex",
            "models.tex",
            "pretrained.tex",
            "entropy.tex",
            "norms.tex",
            "twins.tex",
            "h25.tex",
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
        pins=pins("latex"),
    shell:
        "python scripts/latex.py --frame {input.frame} --out results/paper &> {log}"


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
        pins=pins("manifest"),
        config=verbatim(CONFIG.model_dump_json(exclude={"dataset"})),
        sources=verbatim(",".join(SOURCE_FILES)),
    shell:
        "python scripts/manifest.py {input.runs} --recall results/recall_runs --jacobian results/runs"
        " --depth results/depth"
        " --pretrained results/pretrained --config {params.config:q}"
        " --dataset {input.dataset} --sources {params.sources:q} --out {output} &> {log}"


rule page:
    input:
        code("page"),
        expand("results/paper/figures/{figure}.svg", figure=FIGURES),
        frame="results/paper/frame.json",
        template="workflow/report/summary.md",
        page="workflow/report/page.html.j2",
        style="workflow/report/page.css",
        script="workflow/report/page.js",
        manifest="results/paper/manifest.json",
    output:
        report(
            "results/paper/summary.html",
            caption="../report/page.rst",
            category="Summary",
        ),
    log:
        "results/logs/page.log",
    benchmark:
        "results/benchmarks/page.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("page"),
    shell:
        "python scripts/page.py --frame {input.frame} --template {input.template}"
        " --page {input.page} --style {input.style} --script {input.script}"
        " --figures results/paper/figures --manifest {input.manifest} --out {output} &> {log}"


rule typeset:
    input:
        code("typeset"),
        expand("results/paper/figures/{figure}.svg", figure=FIGURES),
        frame="results/paper/frame.json",
        template="workflow/report/summary.md",
        layout="workflow/report/summary.typ",
    output:
        "results/paper/summary.pdf",
    log:
        "results/logs/typeset.log",
    benchmark:
        "results/benchmarks/typeset.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("typeset"),
    shell:
        "python scripts/typeset.py --frame {input.frame} --template {input.template}"
        " --layout {input.layout} --figures results/paper/figures --out {output} &> {log}"
