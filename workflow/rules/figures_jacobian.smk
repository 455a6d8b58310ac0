# takes: results/jacobian/*.csv, never a model
# makes: results/paper/figures/ {jacobian,surrogates}.pdf, .svg and the caption .txt


rule figure_jacobian:
    input:
        code("figure_jacobian"),
        runs="results/jacobian/losses.csv",
        layers="results/jacobian/layers_by_cell.csv",
        caption="workflow/report/jacobian.rst",
    output:
        multiext("results/paper/figures/jacobian", ".pdf", ".txt"),
        report(
            "results/paper/figures/jacobian.svg",
            caption="../report/jacobian.rst",
            category="Jacobian",
        ),
    log:
        "results/logs/figure_jacobian.log",
    benchmark:
        "results/benchmarks/figure_jacobian.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_jacobian"),
        look=LOOK,
        protocols=[CONFIG.jacobian.published, CONFIG.jacobian.corrected],
    shell:
        "python scripts/figure_jacobian.py {params.protocols} {params.look} --runs {input.runs}"
        " --layers {input.layers}"
        " --caption {input.caption} --out results/paper/figures/jacobian &> {log}"


rule figure_surrogates:
    input:
        code("figure_surrogates"),
        runs="results/jacobian/losses.csv",
        costs="results/jacobian/costs.csv",
        expected="results/jacobian/expected.csv",
        caption="workflow/report/surrogates.rst",
    output:
        multiext("results/paper/figures/surrogates", ".pdf", ".txt"),
        report(
            "results/paper/figures/surrogates.svg",
            caption="../report/surrogates.rst",
            category="Jacobian",
        ),
    log:
        "results/logs/figure_surrogates.log",
    benchmark:
        "results/benchmarks/figure_surrogates.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_surrogates"),
        look=LOOK,
        protocol=CONFIG.jacobian.corrected,
    shell:
        "python scripts/figure_surrogates.py {params.protocol} {params.look} --runs {input.runs}"
        " --costs {input.costs} --expected {input.expected}"
        " --caption {input.caption} --out results/paper/figures/surrogates &> {log}"
