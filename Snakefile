# normscope: from the corpus to the paper. Maths in src/normscope, files in scripts, wiring in
# workflow/rules, choices in config.yaml. Targets: models, tables, figures, paper (all of it: no
# target), and every study by its name.
import json
import os
from pathlib import Path

from pydantic import BaseModel
from snakemake.utils import min_version

min_version("9.27")


# the user's choices; what they leave out is as in the config.yaml beside this file
if os.path.lexists("config.yaml"):

    configfile: "config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/storage.smk"
include: "workflow/rules/upkeep.smk"
include: "workflow/rules/progress.smk"


# results of expensive rules live here by the hash of all that decides them; DVC versions it
STORE = os.environ.setdefault("SNAKEMAKE_OUTPUT_CACHE", experiments.home("store"))
IS_OWN_STORE = os.path.abspath(STORE) == os.path.abspath("store")
make_store(STORE)

CONFIG = validated(config)
DEVICE = device(CONFIG.device)
GPUS = int(DEVICE == "cuda")  # of every job that trains or probes
STUDIES = CONFIG.studies
PINS = {}  # of every script whose code decides a job
lay_out(STORE, STUDIES)
mend(STORE)
DRAWINGS = Path(PROJECT, "scripts/figures")
FIGURES = registered(figures, project("workflow/figures.yaml"), CONFIG, DRAWINGS)
METRICS = registered(metrics, project("workflow/metrics.yaml"))
stated(data("claims.yaml"))
prompted(data("prompts.yaml"))
# what is expensive: asked for by itself, as one that failed or was damaged is made again
TABLES = [table for study in STUDIES for table in tables(study)]
KEPT = [
    f"results/{s}/{record}"
    for s, study in STUDIES.items()
    for record in study.records()
]


wildcard_constraints:
    name=r"[a-z0-9][a-z0-9_.-]*",


rule all:
    input:
        multiext("results/paper/summary", ".md", ".html", ".pdf"),
        multiext(
            "results/paper/",
            "claims.json",
            "manifest.json",
            "metrics.json",
            "example.tex",
        ),
        "results/paper/residual_gain.json",
        KEPT,
        drawn(".pdf"),


include: "workflow/rules/dataset.smk"
include: "workflow/rules/study.smk"
include: "workflow/rules/pretrained.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/paper.smk"
include: "workflow/rules/cost.smk"


rule models:
    input:
        KEPT,


for study in STUDIES:

    rule:
        name:
            study
        input:
            tables(study),


rule tables:
    input:
        TABLES,


rule figures:
    input:
        drawn(".pdf"),


rule paper:
    input:
        rules.all.input,


provenance.save(PARSED)

if is_module():
    check_start()  # what follows is of the workflow that uses this one


onstart:
    check_start()
    drop_leftovers()
    say_time()


onerror:
    forget_failures()
    drop_leftovers()
    say("What is finished is kept: the same command goes on from here.")


onsuccess:
    forget_failures()
    drop_leftovers()
    share(STORE)
    say_results()
