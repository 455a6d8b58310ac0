# takes: results/tables/*.csv, never a model
# makes: results/paper/figures/ {loss,curves,gain}.pdf, .svg and the caption .txt


rule figure_loss:
    input:
        code("figure_loss"),
        runs="results/tables/runs.csv",
        arms="results/tables/arms.csv",
        caption="workflow/report/loss.rst",
    output:
        multiext("results/paper/figures/loss", ".pdf", ".txt"),
        report(
            "results/paper/figures/loss.svg",
            caption="../report/loss.rst",
            category="Loss",
        ),
    log:
        "results/logs/figure_loss.log",
    benchmark:
        "results/benchmarks/figure_loss.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_loss"),
        look=LOOK,
        baseline=BASELINE,
    shell:
        "python scripts/figure_loss.py --runs {input.runs} --arms {input.arms}"
        " --baseline {params.baseline} {params.look}"
        " --caption {input.caption} --out results/paper/figures/loss &> {log}"


rule figure_curves:
    input:
        code("figure_curves"),
        runs="results/tables/runs.csv",
        curves="results/tables/curves.csv",
        caption="workflow/report/curves.rst",
    output:
        multiext("results/paper/figures/curves", ".pdf", ".txt"),
        report(
            "results/paper/figures/curves.svg",
            caption="../report/curves.rst",
            category="Loss",
        ),
    log:
        "results/logs/figure_curves.log",
    benchmark:
        "results/benchmarks/figure_curves.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_curves"),
        look=LOOK,
    shell:
        "python scripts/figure_curves.py --runs {input.runs} --curves {input.curves} {params.look}"
        " --caption {input.caption} --out results/paper/figures/curves &> {log}"


rule figure_gain:
    input:
        code("figure_gain"),
        runs="results/tables/runs.csv",
        gain="results/tables/gain.csv",
        by_depth="results/tables/gain_by_depth.csv",
        caption="workflow/report/gain.rst",
    output:
        multiext("results/paper/figures/gain", ".pdf", ".txt"),
        report(
            "results/paper/figures/gain.svg",
            caption="../report/gain.rst",
            category="Gain",
        ),
    log:
        "results/logs/figure_gain.log",
    benchmark:
        "results/benchmarks/figure_gain.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_gain"),
        look=LOOK,
    shell:
        "python scripts/figure_gain.py --runs {input.runs} --gain {input.gain}"
        " --by-depth {input.by_depth} {params.look}"
        " --caption {input.caption} --out results/paper/figures/gain &> {log}"
