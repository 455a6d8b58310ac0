# normscope: from the corpus to the paper. Maths in src/normscope, files in scripts, wiring in
# workflow/rules, choices in config.yaml. Targets: models, runs, gain, decisive, jacobian, depth,
# textbook, tutorial, pretrained, figures, paper (all of it: no target).
import json
import os
from pathlib import Path

from pydantic import BaseModel
from snakemake.utils import min_version

min_version("9.27")


configfile: "config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/upkeep.smk"


# results of expensive rules live here by the hash of all that decides them; DVC versions it
STORE = os.environ.setdefault("SNAKEMAKE_OUTPUT_CACHE", os.path.abspath("store"))
IS_OWN_STORE = os.path.abspath(STORE) == os.path.abspath("store")
os.makedirs(STORE, exist_ok=True)

CONFIG = validated(config)
RUNS = CONFIG.trained()
TRAINED = RUNS | CONFIG.jacobian.trained()
RECALL_RUNS, CELLS = CONFIG.recall.trained(), CONFIG.recall.cells()
JACOBIAN_CELLS = CONFIG.jacobian.cells(exact=True)
SHAPES, PLACES = CONFIG.depth.recipes(), CONFIG.depth.places()
MODELS = CONFIG.pretrained.by_name()
BASELINE = f"{CONFIG.baseline.arm}-{CONFIG.baseline.placement}"
FIGURES = (
    "loss curves gain notebook decisive slice factors sweep jacobian surrogates "
    "residual comparison final_norm blocks sensitivity beside signals spectra trainability textbook"
).split()
LESSONS = ["signals", "spectra", "trainability", "textbook"]  # of the tutorial in docs/
LOOK = f"{flags(CONFIG.figures)} --level {CONFIG.level}"
# one parameter: Snakemake compares the values of several without their names
JUDGED = f"--level {CONFIG.level} --margin-sds {CONFIG.margin_sds}"
os.environ.update(
    NORMSCOPE_SOURCES=json.dumps([s.model_dump() for s in CONFIG.dataset.sources])
)
mend(STORE)
MODEL_FILES = {name: model_files(model.source) for name, model in MODELS.items()}
# what is expensive: asked for by itself, as one that failed or was damaged is made again
KEPT = expand("results/runs/{run}/model.safetensors", run=TRAINED)
KEPT += expand("results/recall_runs/{run}/model.safetensors", run=RECALL_RUNS)
KEPT += expand("results/depth/{shape}/models.safetensors", shape=SHAPES)
KEPT += of_models("results/pretrained/{model}/model.json")
DATASET_FILES = nanogpt_files(CONFIG.dataset.directory)
SOURCE_FILES = sorted({f for script in scripts() for f in code(script)})
SOURCE_FILES += sorted(
    str(p) for s in ("csv", "json", "yaml") for p in Path("data").glob(f"*.{s}")
)


wildcard_constraints:
    seed=r"\d+",
    run=r"[a-z0-9_.-]+-\d+",
    cell=r"[a-z0-9_-]+-[0-9.]+",
    model=r"[a-z0-9][a-z0-9_.-]*",
    shape=r"[a-z0-9_]+-[a-z]+-[a-z]+-[a-z0-9]+-\d+",
    place=r"[a-z]+",


rule all:
    default_target: True
    input:
        multiext("results/paper/summary", ".md", ".html", ".pdf"),
        multiext("results/paper/", "claims.json", "manifest.json", "example.tex"),
        "results/paper/residual_gain.json",
        KEPT,
        expand("results/paper/figures/{figure}.pdf", figure=FIGURES),


include: "workflow/rules/dataset.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/gain.smk"
include: "workflow/rules/recall.smk"
include: "workflow/rules/jacobian.smk"
include: "workflow/rules/depth.smk"
include: "workflow/rules/pretrained.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/figures_recall.smk"
include: "workflow/rules/figures_jacobian.smk"
include: "workflow/rules/figures_depth.smk"
include: "workflow/rules/figures_pretrained.smk"
include: "workflow/rules/paper.smk"
include: "workflow/rules/cost.smk"


rule models:
    input:
        KEPT,


rule tutorial:
    input:
        rules.depth.output,
        rules.textbook.output,
        expand("results/paper/figures/{figure}.svg", figure=LESSONS),


rule figures:
    input:
        expand("results/paper/figures/{figure}.pdf", figure=FIGURES),


rule paper:
    input:
        rules.all.input,


onstart:
    check_writable("results")
    check_pins()
    drop_leftovers()


onerror:
    forget_failures()
    drop_leftovers()


onsuccess:
    forget_failures()
    drop_leftovers()
    print(
        "Summary: results/paper/summary.html, .md, .pdf   figures: results/paper/figures/"
    )
