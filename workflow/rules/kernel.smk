# takes: nothing but the configuration
# makes: results/kernel/tables/


rule kernel_tables:
    input:
        code("kernel_tables"),
    output:
        tables("kernel"),
    log:
        "results/logs/kernel_tables.log",
    benchmark:
        "results/benchmarks/kernel_tables.tsv"
    conda:
        "../envs/normscope.yaml"
    params:
        recipe=recipe(CONFIG.kernel.tabulation(CONFIG.settings)),
    shell:
        "python scripts/kernel_tables.py --recipe {params.recipe:q} --out results/kernel/tables &> {log}"
