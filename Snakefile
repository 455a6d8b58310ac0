# normscope: from the corpus to the paper. The mathematics is in src/normscope, input and output of
# files in scripts, the rules in workflow/rules, and the settings in config.yaml. Targets: texts,
# models, tables, figures, paper (everything, the default), each study by its name, and card.
import os
from pathlib import Path

from pydantic import BaseModel
from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/common.smk"
include: "workflow/rules/upkeep.smk"


# the results of expensive rules, named by a hash of what determines them, and versioned by DVC
STORE = os.environ.setdefault("SNAKEMAKE_OUTPUT_CACHE", default_store())

CONFIG = configuration(settings())
DEVICE = CONFIG.device
if DEVICE == "auto":
    DEVICE = "cuda" if has_gpu() else "cpu"
GPUS = int(DEVICE == "cuda")  # GPUs of each job that trains or probes
STUDIES = CONFIG.studies  # of the paper
JOBS = CONFIG.every_study  # with the card, if one is made
PINS = {}  # pinned packages of every script, by script
check_place(STORE)
lay_out(STORE, JOBS)
repair(STORE)
REGISTERED = registry()
FIGURES = figures.select_figures(REGISTERED, CONFIG)
METRICS = metrics.shown_columns({name: study.TABLES for name, study in STUDIES.items()})
COUNTDOWN = Countdown(work())
LOGGER.addHandler(COUNTDOWN)
STATEMENTS = result_of(load_checked, [*map(Path, documents())], STUDIES, REGISTERED)
result_of(findings.load, Path(data("findings.yaml")), STATEMENTS.statements, REGISTERED)
result_of(check_prompts, Path(data("prompts.yaml")), CONFIG.pretrained)
result_of(check_directories, CONFIG.pretrained)
# Every file is a target, so that a missing one is made again: Snakemake ignores a missing file from which
# nothing has to be made
TABLES = [table for study in STUDIES for table in tables(study)]
KEPT = [
    f"results/{s}/{path}" for s, study in STUDIES.items() for path in study.records()
]
MODELS = [file for study in STUDIES for file in models(study)]
PROBES = [file for study in STUDIES for file in probes(study)]
FIGURE_FILES = [file for suffix in DRAWN for file in figure_files(suffix)]
TEXTS = [f"{corpus(t)}/{name}" for t in CONFIG.texts_read for name in TEXT_FILES]


# to parse all code takes a third of a start
FACTS = Path(".snakemake/normscope/code.json")
load_facts(FACTS)


wildcard_constraints:
    name=r"[a-z0-9][a-z0-9_.-]*",


rule all:
    input:
        [f"results/paper/{name}" for name in PAPER],
        TEXTS,
        MODELS,
        PROBES,
        TABLES,
        FIGURE_FILES,


include: "workflow/rules/dataset.smk"
include: "workflow/rules/study.smk"
include: "workflow/rules/pretrained.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/paper.smk"
include: "workflow/rules/card.smk"


# This is a checkpoint although nothing depends on it. Without a checkpoint, a cluster job knows only
# the rule of the job, and would store a model under a different name than a run on one machine does.
checkpoint texts:
    input:
        TEXTS,


rule models:
    input:
        [file for study in JOBS for file in models(study)],


for study in STUDIES:

    rule:
        name:
            study
        input:
            tables(study),
            [path for path in MODELS if path.startswith(f"results/{study}/")],


rule tables:
    input:
        TABLES,


rule figures:
    input:
        FIGURE_FILES,


rule paper:
    input:
        rules.all.input,


rule card:
    input:
        cards,
        [part("card") for part in (models, probes, tables) if CONFIG.card],


save_facts(FACTS)


if is_module():
    check_start()  # the handlers below do not run in a module


onstart:
    check_start()
    drop_leftovers()
    say_start()


onerror:
    forget_failures()
    drop_leftovers()
    adopt(STORE)
    show_from(logging.INFO)
    LOGGER.info("What is finished is kept: the same command goes on from here.")


onsuccess:
    forget_failures()
    drop_leftovers()
    adopt(STORE)
    synchronize_stores(STORE)
    say_results()
