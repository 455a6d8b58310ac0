# takes: results/tables/*.csv and those of every part, data/claims.yaml, data/published.csv,
#        the captions of results/paper/figures/
# makes: results/paper/ claims.json, frame.json (all that is printed), and of the frame alone
#        summary.md, summary.html, summary.pdf, tables/*.tex, numbers.tex, claims.tex, example.tex;
#        manifest.json


CONFIGURATION = CONFIG.model_dump_json(exclude={"dataset", "figures"})


rule claims:
    input:
        code("claims", "claims"),
        TABLES,
        claims="data/claims.yaml",
    output:
        "results/paper/claims.json",
    log:
        "results/logs/claims.log",
    benchmark:
        "results/benchmarks/claims.tsv"
    conda:
        "../envs/normscope.yaml"
    params:
        config=verbatim(CONFIGURATION),
    shell:
        "python scripts/claims.py --config {params.config:q} --claims {input.claims}"
        " --results results --out {output} &> {log}"


rule frame:
    input:
        code("frame", "pages"),
        TABLES,
        drawn(".txt"),
        claims="results/paper/claims.json",
        figures="workflow/figures.yaml",
    output:
        "results/paper/frame.json",
    log:
        "results/logs/frame.log",
    benchmark:
        "results/benchmarks/frame.tsv"
    conda:
        "../envs/normscope.yaml"
    params:
        config=verbatim(CONFIGURATION),
    shell:
        "python scripts/frame.py --config {params.config:q} --claims {input.claims}"
        " --figures {input.figures} --results results --out {output} &> {log}"


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
    shell:
        "python scripts/latex.py --frame {input.frame} --out results/paper &> {log}"


rule manifest:
    input:
        code("manifest"),
        SOURCE_FILES,
        KEPT,
        dataset="results/dataset/meta.json",
    output:
        "results/paper/manifest.json",
    log:
        "results/logs/manifest.log",
    benchmark:
        "results/benchmarks/manifest.tsv"
    conda:
        "../envs/normscope.yaml"
    params:
        config=verbatim(CONFIG.model_dump_json(exclude={"dataset"})),
        sources=verbatim(",".join(SOURCE_FILES)),
    shell:
        "python scripts/manifest.py --config {params.config:q} --results results"
        " --dataset {input.dataset} --sources {params.sources:q} --out {output} &> {log}"


rule page:
    input:
        code("page"),
        drawn(".svg"),
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
    shell:
        "python scripts/page.py --frame {input.frame} --template {input.template}"
        " --page {input.page} --style {input.style} --script {input.script}"
        " --figures results/paper/figures --manifest {input.manifest} --out {output} &> {log}"


rule typeset:
    input:
        code("typeset"),
        drawn(".svg"),
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
    shell:
        "python scripts/typeset.py --frame {input.frame} --template {input.template}"
        " --layout {input.layout} --figures results/paper/figures --out {output} &> {log}"
