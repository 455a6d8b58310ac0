# takes: results/pretrained/*.csv, results/tables/*.csv, data/reference_gains.csv, never a model
# makes: results/paper/figures/ {residual,comparison,final_norm,blocks,sensitivity,beside}.pdf, .svg
#        and the caption .txt


rule figure_residual:
    input:
        code("figure_residual"),
        observations="results/pretrained/observations.csv",
        by_model="results/pretrained/by_model.csv",
        models="results/pretrained/models.csv",
        caption="workflow/report/residual.rst",
    output:
        multiext("results/paper/figures/residual", ".pdf", ".txt"),
        report(
            "results/paper/figures/residual.svg",
            caption="../report/residual.rst",
            category="Pretrained models",
        ),
    log:
        "results/logs/figure_residual.log",
    benchmark:
        "results/benchmarks/figure_residual.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_residual"),
        look=LOOK,
    shell:
        "python scripts/figure_residual.py {params.look} --observations {input.observations} --by-model {input.by_model}"
        " --models {input.models}"
        " --caption {input.caption} --out results/paper/figures/residual &> {log}"


rule figure_comparison:
    input:
        code("figure_comparison"),
        by_model="results/pretrained/by_model.csv",
        models="results/pretrained/models.csv",
        caption="workflow/report/comparison.rst",
    output:
        multiext("results/paper/figures/comparison", ".pdf", ".txt"),
        report(
            "results/paper/figures/comparison.svg",
            caption="../report/comparison.rst",
            category="Pretrained models",
        ),
    log:
        "results/logs/figure_comparison.log",
    benchmark:
        "results/benchmarks/figure_comparison.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_comparison"),
        look=LOOK,
    shell:
        "python scripts/figure_comparison.py {params.look} --by-model {input.by_model}"
        " --models {input.models}"
        " --caption {input.caption} --out results/paper/figures/comparison &> {log}"


rule figure_final_norm:
    input:
        code("figure_final_norm"),
        references="data/reference_gains.csv",
        sensitivity="results/pretrained/sensitivity.csv",
        h25_models="results/pretrained/h25_models.csv",
        layers="results/pretrained/layers.csv",
        models="results/pretrained/models.csv",
        caption="workflow/report/final_norm.rst",
    output:
        multiext("results/paper/figures/final_norm", ".pdf", ".txt"),
        report(
            "results/paper/figures/final_norm.svg",
            caption="../report/final_norm.rst",
            category="Pretrained models",
        ),
    log:
        "results/logs/figure_final_norm.log",
    benchmark:
        "results/benchmarks/figure_final_norm.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_final_norm"),
        look=LOOK,
    shell:
        "python scripts/figure_final_norm.py {params.look} --references {input.references} --sensitivity {input.sensitivity} --h25-models {input.h25_models}"
        " --layers {input.layers} --models {input.models}"
        " --caption {input.caption} --out results/paper/figures/final_norm &> {log}"


rule figure_blocks:
    input:
        code("figure_blocks"),
        layers="results/pretrained/layers.csv",
        models="results/pretrained/models.csv",
        caption="workflow/report/blocks.rst",
    output:
        multiext("results/paper/figures/blocks", ".pdf", ".txt"),
        report(
            "results/paper/figures/blocks.svg",
            caption="../report/blocks.rst",
            category="Pretrained models",
        ),
    log:
        "results/logs/figure_blocks.log",
    benchmark:
        "results/benchmarks/figure_blocks.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_blocks"),
        look=LOOK,
    shell:
        "python scripts/figure_blocks.py {params.look} --layers {input.layers} --models {input.models}"
        " --caption {input.caption} --out results/paper/figures/blocks &> {log}"


rule figure_sensitivity:
    input:
        code("figure_sensitivity"),
        sensitivity="results/pretrained/sensitivity.csv",
        models="results/pretrained/models.csv",
        caption="workflow/report/sensitivity.rst",
    output:
        multiext("results/paper/figures/sensitivity", ".pdf", ".txt"),
        report(
            "results/paper/figures/sensitivity.svg",
            caption="../report/sensitivity.rst",
            category="Pretrained models",
        ),
    log:
        "results/logs/figure_sensitivity.log",
    benchmark:
        "results/benchmarks/figure_sensitivity.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_sensitivity"),
        look=LOOK,
    shell:
        "python scripts/figure_sensitivity.py {params.look} --sensitivity {input.sensitivity}"
        " --models {input.models}"
        " --caption {input.caption} --out results/paper/figures/sensitivity &> {log}"


rule figure_beside:
    input:
        code("figure_beside"),
        gains="results/tables/gain_by_arm.csv",
        runs="results/tables/runs.csv",
        by_model="results/pretrained/by_model.csv",
        models="results/pretrained/models.csv",
        caption="workflow/report/beside.rst",
    output:
        multiext("results/paper/figures/beside", ".pdf", ".txt"),
        report(
            "results/paper/figures/beside.svg",
            caption="../report/beside.rst",
            category="Pretrained models",
        ),
    log:
        "results/logs/figure_beside.log",
    benchmark:
        "results/benchmarks/figure_beside.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_beside"),
        look=LOOK,
    shell:
        "python scripts/figure_beside.py {params.look} --gains {input.gains} --runs {input.runs}"
        " --by-model {input.by_model} --models {input.models}"
        " --caption {input.caption} --out results/paper/figures/beside &> {log}"
