# takes: results/depth/*.csv, results/textbook/*.csv, never a model
# makes: results/paper/figures/ {signals,spectra,trainability,textbook}.pdf, .svg and the caption .txt


rule figure_signals:
    input:
        code("figure_signals"),
        by_block="results/depth/by_block.csv",
        caption="workflow/report/signals.rst",
    output:
        multiext("results/paper/figures/signals", ".pdf", ".txt"),
        report(
            "results/paper/figures/signals.svg",
            caption="../report/signals.rst",
            category="Depth",
        ),
    log:
        "results/logs/figure_signals.log",
    benchmark:
        "results/benchmarks/figure_signals.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_signals"),
        look=LOOK,
    shell:
        "python scripts/figure_signals.py {params.look} --by-block {input.by_block}"
        " --caption {input.caption} --out results/paper/figures/signals &> {log}"


rule figure_spectra:
    input:
        code("figure_spectra"),
        by_block="results/depth/by_block.csv",
        caption="workflow/report/spectra.rst",
    output:
        multiext("results/paper/figures/spectra", ".pdf", ".txt"),
        report(
            "results/paper/figures/spectra.svg",
            caption="../report/spectra.rst",
            category="Depth",
        ),
    log:
        "results/logs/figure_spectra.log",
    benchmark:
        "results/benchmarks/figure_spectra.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_spectra"),
        look=LOOK,
    shell:
        "python scripts/figure_spectra.py {params.look} --by-block {input.by_block}"
        " --caption {input.caption} --out results/paper/figures/spectra &> {log}"


rule figure_trainability:
    input:
        code("figure_trainability"),
        trainability="results/depth/trainability.csv",
        caption="workflow/report/trainability.rst",
    output:
        multiext("results/paper/figures/trainability", ".pdf", ".txt"),
        report(
            "results/paper/figures/trainability.svg",
            caption="../report/trainability.rst",
            category="Depth",
        ),
    log:
        "results/logs/figure_trainability.log",
    benchmark:
        "results/benchmarks/figure_trainability.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_trainability"),
        look=LOOK,
    shell:
        "python scripts/figure_trainability.py {params.look} --trainability {input.trainability}"
        " --caption {input.caption} --out results/paper/figures/trainability &> {log}"


rule figure_textbook:
    input:
        code("figure_textbook"),
        scratch="results/textbook/scratch.csv",
        epsilon="results/textbook/epsilon.csv",
        wild="results/textbook/wild.csv",
        affine="results/textbook/affine.csv",
        batches="results/textbook/batches.csv",
        caption="workflow/report/textbook.rst",
    output:
        multiext("results/paper/figures/textbook", ".pdf", ".txt"),
        report(
            "results/paper/figures/textbook.svg",
            caption="../report/textbook.rst",
            category="Depth",
        ),
    log:
        "results/logs/figure_textbook.log",
    benchmark:
        "results/benchmarks/figure_textbook.tsv"
    conda:
        "../envs/normscope.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        pins=pins("figure_textbook"),
        look=LOOK,
    shell:
        "python scripts/figure_textbook.py {params.look} --scratch {input.scratch}"
        " --epsilon {input.epsilon} --wild {input.wild} --affine {input.affine}"
        " --batches {input.batches}"
        " --caption {input.caption} --out results/paper/figures/textbook &> {log}"
