# reads:  results/<study>/tables/*.csv, data/claims.yaml, the captions in results/paper/figures/, the
#         templates in workflow/report/, figures.yaml and section.md of each study, and
#         evidence/ if it exists
# writes: results/paper/ with claims.json; frame.json (everything that is printed); from the frame
#         summary.md, summary.html, summary.pdf, tables/<study>/*.tex, numbers.tex, claims.tex and
#         example.tex; manifest.json; metrics.json and plots/ for DVC


# the manifest leaves out these parts of the configuration; jobs also leave out the style of figures
UNRECORDED = {"dataset", "device", "demonstration"}
CONFIGURATION = CONFIG.model_dump_json(exclude=UNRECORDED | {"figures"})
# the text of the page; studies without a section are left out
WORDS = [project("workflow/report/summary.md"), *of_studies("section.md")]
# the project's data files, which the manifest lists: prompts, statements, published numbers
DATA = sorted(path.name for path in Path(PROJECT, "data").glob("*.*"))
# the kept evidence of a run with more seeds, which the page compares with this run
KEPT_RUN = [project(f"evidence/{name}.json") for name in ("claims", "manifest", "run")]
EVIDENCE = KEPT_RUN if all(map(os.path.isfile, KEPT_RUN)) else []


rule claims:
    input:
        code("claims", "all"),
        TABLES,
        claims=data("claims.yaml"),
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
        'python "$NORMSCOPE/scripts/claims.py" --config {params.config:q} --claims {input.claims:q}'
        " --results results --out {output} &> {log}"


rule frame:
    input:
        code("frame", "all", "pages"),
        TABLES,
        drawn(".txt"),
        EVIDENCE,
        claims="results/paper/claims.json",
        figures=of_studies(figures.FILE),
        # the locations of tests and code; no other result depends on them
        traces=traced,
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
        evidence=["--evidence", project("evidence")] if EVIDENCE else [],
        demonstration=["--demonstration"] if CONFIG.demonstration else [],
    shell:
        'python "$NORMSCOPE/scripts/frame.py" --config {params.config:q} --claims {input.claims:q}'
        " --traces {input.traces:q} --results results"
        " {params.evidence:q} {params.demonstration} --out {output} &> {log}"


rule summary:
    input:
        code("summary"),
        WORDS,
        frame="results/paper/frame.json",
    output:
        "results/paper/summary.md",
    log:
        "results/logs/summary.log",
    benchmark:
        "results/benchmarks/summary.tsv"
    conda:
        "../envs/normscope.yaml"
    shell:
        'python "$NORMSCOPE/scripts/summary.py" --frame {input.frame}'
        ' --templates "$NORMSCOPE/workflow/report"'
        " --out {output} &> {log}"


rule latex:
    input:
        code("latex"),
        [project(f"workflow/report/latex/{name}.tex") for name in ("example", "table")],
        frame="results/paper/frame.json",
    output:
        multiext("results/paper/", "numbers.tex", "claims.tex", "example.tex"),
        directory("results/paper/tables"),
    log:
        "results/logs/latex.log",
    benchmark:
        "results/benchmarks/latex.tsv"
    conda:
        "../envs/normscope.yaml"
    shell:
        'python "$NORMSCOPE/scripts/latex.py" --frame {input.frame}'
        ' --templates "$NORMSCOPE/workflow/report/latex"'
        " --out results/paper &> {log}"


rule manifest:
    input:
        code("manifest"),
        KEPT,
        dataset="results/dataset/meta.json",
        code=lambda wildcards: [
            held(f"results/code/{script}.txt")
            for script in sorted(PINS.keys() - {"cost"})
        ],
        data=[data(name) for name in DATA] + EVIDENCE[:1],
    output:
        "results/paper/manifest.json",
    log:
        "results/logs/manifest.log",
    benchmark:
        "results/benchmarks/manifest.tsv"
    conda:
        "../envs/normscope.yaml"
    params:
        config=verbatim(CONFIG.model_dump_json(exclude=UNRECORDED)),
    shell:
        'python "$NORMSCOPE/scripts/manifest.py" {input.code} {input.data:q}'
        " --config {params.config:q}"
        ' --results results --dataset {input.dataset} --project "$NORMSCOPE" --out {output} &> {log}'


rule metrics:
    input:
        code("metrics", "all", "tables"),
        sorted({table_file(metric.study, metric.table) for metric in METRICS.values()}),
        claims="results/paper/claims.json",
    output:
        "results/paper/metrics.json",
        directory("results/paper/plots"),
    log:
        "results/logs/metrics.log",
    benchmark:
        "results/benchmarks/metrics.tsv"
    conda:
        "../envs/normscope.yaml"
    shell:
        'python "$NORMSCOPE/scripts/metrics.py" --claims {input.claims:q}'
        " --results results --out results/paper &> {log}"


rule page:
    input:
        code("page"),
        drawn(".svg"),
        WORDS,
        [project(f"workflow/report/page.{kind}") for kind in ("html.j2", "css", "js")],
        frame="results/paper/frame.json",
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
        'python "$NORMSCOPE/scripts/page.py" --frame {input.frame}'
        ' --templates "$NORMSCOPE/workflow/report"'
        " --figures results/paper/figures --manifest {input.manifest} --out {output} &> {log}"


rule typeset:
    input:
        code("typeset"),
        drawn(".svg"),
        WORDS,
        project("workflow/report/summary.typ"),
        frame="results/paper/frame.json",
    output:
        "results/paper/summary.pdf",
    log:
        "results/logs/typeset.log",
    benchmark:
        "results/benchmarks/typeset.tsv"
    conda:
        "../envs/normscope.yaml"
    shell:
        'python "$NORMSCOPE/scripts/typeset.py" --frame {input.frame}'
        ' --templates "$NORMSCOPE/workflow/report"'
        " --figures results/paper/figures --out {output} &> {log}"
