"""The scripts of the recall test, from training to tables, on a small task."""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import processes
import pytest
from recall_recipes import by, recall_run

from normscope.studies.recall.recipe import Cell, RecallProbe, RecallTables
from normscope.studies.recall.tables import HEIGHTS, MEASURES

STEPS = 30
CELL = Cell("recall", "batchnorm", 0.01)
JOBS = {"sound": CELL, "lost": CELL}
SOUND = recall_run("batchnorm", steps=STEPS, seeds=[10, 2])  # as text, 10 comes before 2
LOST = recall_run("batchnorm", steps=STEPS, seeds=[3], loss_bound=0.1)
# 20 pairs and queries, attention, MLP, two norms with gain and bias, head, at width 8
PARAMETERS = 20 * 8 + (4 * 64 + 4 * 8) + (2 * 4 * 64 + 5 * 8) + 4 * 8 + (4 * 8 + 4)
PROBED = [name for name in MEASURES if name not in [height.name for height in HEIGHTS]]


def run(script: str, place: Path, **flags: Any) -> str:
    """One of the scripts, run to its end; its log."""
    return processes.Script(f"{script} recall", processes.flags(**flags), place / "log").succeed()


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """Models and probes of a job with two seeds, and of a job whose seed diverges."""
    place = tmp_path_factory.mktemp("recall")
    for name, stack in (("sound", SOUND), ("lost", LOST)):
        out = {"out": place / "models" / name, "checkpoints": place / "checkpoints"}
        said = run("train", place, recipe=stack, **out)
    assert "diverged at step 1: the loss is not finite or above the bound" in said
    recipe = RecallProbe(jobs=JOBS, directions=2)
    paths = {"models": place / "models", "out": place / "probes" / "recall"}
    run("probe", place, recipe=recipe, name="recall", **paths)
    return place


def test_the_outputs_of_a_training_job_record_what_was_trained(results):
    folder = results / "models" / "sound"
    config = json.loads((folder / "config.json").read_text())
    job = SOUND.model_dump()
    assert {name: config[name] for name in job} == job
    metrics = pd.read_csv(folder / "metrics.csv")
    assert metrics[["seed", "parameters"]].values.tolist() == [[10, PARAMETERS], [2, PARAMETERS]]
    assert metrics["diverged_at"].isna().all()
    curves = pd.read_csv(folder / "curves.csv")
    steps = list(range(3, STEPS + 1, 3))
    assert curves.groupby("seed")["step"].agg(list).to_dict() == {2: steps, 10: steps}
    lost = pd.read_csv(results / "models" / "lost" / "curves.csv")
    assert lost["step"].tolist() == [1]
    assert lost["train_loss"].item() > 0.1


def test_sound_models_are_measured_and_a_diverged_one_is_not(results):
    names = ("metrics", "slices", "spectra")
    tables = [pd.read_csv(results / "probes" / "recall" / f"{name}.csv") for name in names]
    metrics, slices, spectra = tables
    for table in tables:
        assert set(table[[*Cell._fields]].itertuples(index=False, name=None)) == {CELL}
    assert metrics["seed"].tolist() == [2, 10, 3]
    assert metrics["parameters"].tolist() == [PARAMETERS] * 3
    rows = by(metrics, "seed")
    assert rows[3]["diverged_at"] == 1
    assert all(math.isnan(rows[3][name]) for name in PROBED)
    for seed in (2, 10):
        assert all(math.isfinite(rows[seed][name]) for name in PROBED)
        # (2 + 2 beta1) / (1 - beta1) = 38 at beta1 = 0.9, over the learning rate
        share = rows[seed]["preconditioned_sharpness"] / (38 / CELL.learning_rate)
        assert rows[seed]["edge"] == pytest.approx(share, rel=1e-6)
    assert rows[2]["loss"] != rows[10]["loss"]
    assert slices.groupby("seed").size().to_dict() == dict.fromkeys((2, 10), 40 + 21 + 40 + 2 * 21)
    assert spectra.groupby(["seed", "where"]).size().unstack().values.tolist() == [[8] * 3] * 2


def test_the_models_of_all_jobs_are_collected(results):
    shown = {"task": "recall", "learning_rate": 0.01, "level": 0.95}
    recipe = RecallTables(jobs=JOBS, probes=["recall"], **shown)
    paths = {"models": results / "models", "probes": results / "probes"}
    run("make_tables", results, recipe=recipe, out=results / "tables", **paths)
    names = ("runs", "cells", "best", "curves", "factors")
    runs, cells, best, curves, factors = (
        pd.read_csv(results / "tables" / f"{name}.csv") for name in names
    )
    assert runs["seed"].tolist() == [2, 10, 3]
    row = by(cells, "measure")["loss"]
    mean = runs["loss"].dropna().mean()
    assert (row["n"], row["diverged"], row["mean"]) == (2, 1, pytest.approx(mean, rel=1e-8))
    assert curves.groupby("seed").size().to_dict() == {2: STEPS / 3, 10: STEPS / 3, 3: 1}
    assert best.empty
    assert factors.empty
