# reads:  results/<study>/tables/*.csv, data/claims/*.yaml, data/findings.yaml, results/paper/figures/, the
#         templates in workflow/report/, figures.yaml, section.md of each study, and
#         evidence/, with the frozen tests
# writes: results/paper/ with claims.json; frame.json (all that is printed), summary.md, summary.html, summary.pdf, tables/<study>/*.tex,
#         numbers.tex, claims.tex and example.tex; manifest.json; metrics.json and plots/ for DVC


# the text and the layouts of the summary; studies without a section are left out
LAYOUTS = "page.html pages.lua summary.md answer.md statement.md summary.typ example.tex".split()
TEMPLATES = [project(f"workflow/report/{name}") for name in LAYOUTS]
TEMPLATES += files_of_studies("section.md")
# the project's data files, which the manifest lists: prompts and published numbers
DATA = sorted(path.name for path in Path(PROJECT, "data").glob("*.*"))
# the kept evidence of a run with more seeds, which the page compares with this run
EVIDENCE = [*filter(os.path.isfile, [project("evidence/claims.json")])]
# the tests and settings that were fixed before the evidence run: without it, every verdict is post hoc
FROZEN = [project(f"evidence/{frozen.FROZEN}")]


rule claims:
    input:
        code("claims"),
        TABLES,
        [*filter(os.path.isfile, FROZEN)],
        claims=documents(),
    output:
        "results/paper/claims.json",
    log:
        "results/logs/claims.log",
    group:
        "paper"
    conda:
        "../envs/normscope.yaml"
    params:
        config=constant(CONFIG.settings_json("figures")),
        settings=constant(json.dumps(CONFIG.digests)),
        evidence=constant(project("evidence")),
    shell:
        'python "$NORMSCOPE/scripts/claims.py" {input.claims:q}'
        " --config {params.config:q} --settings {params.settings:q} --evidence {params.evidence:q}"
        " --results results --out {output} &> {log}"


rule manifest:
    input:
        code("manifest"),
        KEPT,
        [f"{corpus(text)}/meta.json" for text in CONFIG.texts_read[1:]],
        dataset="results/dataset/meta.json",
        code=lambda wildcards: [
            local(f"results/code/{script}.txt") for script in sorted(PINS)
        ],
        data=[data(name) for name in DATA] + documents() + EVIDENCE,
    output:
        "results/paper/manifest.json",
    log:
        "results/logs/manifest.log",
    # no group: Snakemake counts all inputs of a group whenever one of them is made
    conda:
        "../envs/normscope.yaml"
    params:
        config=constant(CONFIG.settings_json()),
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
    group:
        "paper"
    conda:
        "../envs/normscope.yaml"
    params:
        studies=list(STUDIES),
    shell:
        'python "$NORMSCOPE/scripts/metrics.py" {params.studies} --claims {input.claims:q}'
        " --results results --out results/paper &> {log}"


rule render:
    input:
        code("render", "all", "pages"),
        TABLES,
        figure_files(".svg"),
        figure_files(".txt"),
        TEMPLATES,
        EVIDENCE,
        files_of_studies(figures.FILE),
        claims="results/paper/claims.json",
        findings=data("findings.yaml"),
        manifest="results/paper/manifest.json",
    output:
        multiext("results/paper/summary", ".md", ".pdf"),
        multiext(
            "results/paper/", "numbers.tex", "claims.tex", "example.tex", "frame.json"
        ),
        directory("results/paper/tables"),
        report(
            "results/paper/summary.html",
            category="Summary",
        ),
    log:
        "results/logs/render.log",
    group:
        "paper"
    conda:
        "../envs/normscope.yaml"
    params:
        config=constant(CONFIG.settings_json("figures", titles=True)),
        evidence=["--evidence", *EVIDENCE] if EVIDENCE else [],
        demonstration=["--demonstration"] if CONFIG.demonstration else [],
    shell:
        'python "$NORMSCOPE/scripts/render.py" --config {params.config:q} --claims {input.claims:q}'
        " --findings {input.findings:q} --manifest {input.manifest}"
        ' --templates "$NORMSCOPE/workflow/report" --results results {params.evidence:q}'
        " {params.demonstration} --out results/paper &> {log}"
