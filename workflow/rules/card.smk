# reads:  results/dataset/, results/card/tables/, src/normscope/studies/card/; the code of custom norms
# writes: results/card/speed/ (of this machine), and for each norm results/card/<norm>/ with card.html and card.json.
#         Nothing here is a part of the paper

CARD = CONFIG.card

if CARD is not None:

    # it takes all cores, so that nothing else runs while it measures this machine
    rule card_speed:
        input:
            code("probe", "card"),
        output:
            "results/card/speed/speed.csv",
        log:
            "results/logs/card_speed.log",
        benchmark:
            "results/benchmarks/card_speed.tsv"
        conda:
            "../envs/normscope.yaml"
        threads: workflow.cores
        resources:
            gpu=GPUS,
        params:
            recipe=recipe(CARD.costs()),
        shell:
            'python "$NORMSCOPE/scripts/probe.py" card --recipe {params.recipe:q} --threads 1'
            " --models results/card/models --name speed --out results/card/speed &> {log}"

    rule card_page:
        input:
            code("card"),
            corpora("card"),
            tables("card"),
            project(f"{SOURCES}/normscope/studies/card/card.md"),
            rules.card_speed.output,
            dataset="results/dataset/meta.json",
            templates=TEMPLATES[:2],
        output:
            cards(),
        log:
            "results/logs/card_page.log",
        conda:
            "../envs/normscope.yaml"
        params:
            arms=ARMS,
            config=constant(CARD.model_dump_json()),
            look=constant(json.dumps(LOOK)),
        shell:
            'python "$NORMSCOPE/scripts/card.py" --arms {params.arms:q} --config {params.config:q}'
            " --look {params.look:q} --dataset {input.dataset}"
            ' --templates "$NORMSCOPE/workflow/report" --out results/card &> {log}'
