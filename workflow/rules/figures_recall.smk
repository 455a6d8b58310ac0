# takes: results/tables/recall*.csv, never a model
# makes: results/paper/figures/ {notebook,decisive,slice,factors,sweep}.pdf, .svg and the caption .txt


rule figure_notebook:
    input:
        code("figure_notebook"),
        runs="results/tables/recall.csv",
        curves="results/tables/recall_curves.csv",
        slices="results/tables/recall_slices.csv",
        spectra="results/tables/recall_spectra.csv",
        caption="workflow/report/notebook.rst",
    output:
        multiext("results/paper/figures/notebook", ".pdf", ".txt"),
        report(
            "results/paper/figures/notebook.svg",
            caption="../report/notebook.rst",
            category="Decisive test",
        ),
    log:
        "results/logs/figure_notebook.log",
    benchmark:
        "results/benchmarks/figure_notebook.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_notebook"),
        look=LOOK,
        cells=CONFIG.recall.published_cells(),
        seed=CONFIG.recall.published.seeds[0],
    shell:
        "python scripts/figure_notebook.py {params.cells} --seed {params.seed} {params.look}"
        " --runs {input.runs} --curves {input.curves} --slices {input.slices}"
        " --spectra {input.spectra}"
        " --caption {input.caption} --out results/paper/figures/notebook &> {log}"


rule figure_decisive:
    input:
        code("figure_decisive"),
        runs="results/tables/recall.csv",
        curves="results/tables/recall_curves.csv",
        slices="results/tables/recall_slices.csv",
        spectra="results/tables/recall_spectra.csv",
        caption="workflow/report/decisive.rst",
    output:
        multiext("results/paper/figures/decisive", ".pdf", ".txt"),
        report(
            "results/paper/figures/decisive.svg",
            caption="../report/decisive.rst",
            category="Decisive test",
        ),
    log:
        "results/logs/figure_decisive.log",
    benchmark:
        "results/benchmarks/figure_decisive.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_decisive"),
        look=LOOK,
        cells=CONFIG.recall.corrected_cells(),
    shell:
        "python scripts/figure_decisive.py {params.cells} {params.look}"
        " --runs {input.runs} --curves {input.curves} --slices {input.slices}"
        " --spectra {input.spectra}"
        " --caption {input.caption} --out results/paper/figures/decisive &> {log}"


rule figure_slice:
    input:
        code("figure_slice"),
        runs="results/tables/recall.csv",
        slices="results/tables/recall_slices.csv",
        caption="workflow/report/slice.rst",
    output:
        multiext("results/paper/figures/slice", ".pdf", ".txt"),
        report(
            "results/paper/figures/slice.svg",
            caption="../report/slice.rst",
            category="Decisive test",
        ),
    log:
        "results/logs/figure_slice.log",
    benchmark:
        "results/benchmarks/figure_slice.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_slice"),
        look=LOOK,
        cells=CONFIG.recall.published_cells(),
        seed=CONFIG.recall.published.seeds[0],
    shell:
        "python scripts/figure_slice.py {params.cells} --seed {params.seed} {params.look}"
        " --runs {input.runs} --slices {input.slices}"
        " --caption {input.caption} --out results/paper/figures/slice &> {log}"


rule figure_factors:
    input:
        code("figure_factors"),
        runs="results/tables/recall.csv",
        caption="workflow/report/factors.rst",
    output:
        multiext("results/paper/figures/factors", ".pdf", ".txt"),
        report(
            "results/paper/figures/factors.svg",
            caption="../report/factors.rst",
            category="Decisive test",
        ),
    log:
        "results/logs/figure_factors.log",
    benchmark:
        "results/benchmarks/figure_factors.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_factors"),
        look=LOOK,
        corrected=flags(CONFIG.recall.corrected),
    shell:
        "python scripts/figure_factors.py {params.corrected} {params.look} --runs {input.runs}"
        " --caption {input.caption} --out results/paper/figures/factors &> {log}"


rule figure_sweep:
    input:
        code("figure_sweep"),
        runs="results/tables/recall.csv",
        caption="workflow/report/sweep.rst",
    output:
        multiext("results/paper/figures/sweep", ".pdf", ".txt"),
        report(
            "results/paper/figures/sweep.svg",
            caption="../report/sweep.rst",
            category="Decisive test",
        ),
    log:
        "results/logs/figure_sweep.log",
    benchmark:
        "results/benchmarks/figure_sweep.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_sweep"),
        look=LOOK,
    shell:
        "python scripts/figure_sweep.py {params.look} --runs {input.runs}"
        " --caption {input.caption} --out results/paper/figures/sweep &> {log}"
