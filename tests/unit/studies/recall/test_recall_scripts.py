"""The scripts of the decisive test: what they write of sound models, and of what is odd."""

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import processes
import pytest
import safetensors.torch
from normscope.studies.recall.measures import MEASURES
from recall_recipes import by, recall_run

from normscope.nn.arms import ARMS
from normscope.studies.recall.recipe import Cell, RecallProbe, RecallTables

OUTPUTS = (
    "models.safetensors",
    "moments.safetensors",
    "config.json",
    "curves.csv",
    "metrics.csv",
)
STEPS = 150  # with a checkpoint after each
SEEDS = [10, 2]  # as text, 10 comes before 2
CELL = Cell("recall", "batchnorm", 0.01)
# 20 pairs and queries, attention, MLP, two norms with gain and bias, head, at width 8
PARAMETERS = 20 * 8 + (4 * 64 + 4 * 8) + (2 * 4 * 64 + 5 * 8) + 4 * 8 + (4 * 8 + 4)


class Recall(processes.Script):
    """scripts/train.py on a small task, into one directory."""

    def __init__(self, place: Path, *more: str, seeds: list[int] = SEEDS) -> None:
        self.out, self.checkpoints = place / "out", place / "checkpoints"
        self.timing = place / "timing.tsv"
        job = recall_run("batchnorm", steps=STEPS, seeds=seeds)
        paths = {"out": self.out, "checkpoints": self.checkpoints, "timing": self.timing}
        arguments = processes.flags(recipe=job, checkpoint_every=1, **paths)
        super().__init__("train recall", [*arguments, *more], place / "log")

    def outputs(self) -> dict[str, bytes]:
        return {name: (self.out / name).read_bytes() for name in OUTPUTS}

    def newest(self) -> int:
        steps = [int(p.stem.split("-")[1]) for p in self.checkpoints.glob("*/step-*")]
        return max(steps, default=0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Recall:
    """A job that nothing interrupts, started as people start it."""
    script = Recall(tmp_path_factory.mktemp("whole"))
    command = [sys.executable, str(script.path), *script.arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"step {2 * STEPS}/{2 * STEPS}" in done.stderr  # of all models
    assert script.newest() == STEPS
    return script


def test_the_outputs_say_what_was_trained_and_how(whole):
    config = json.loads(whole.outputs()["config.json"])
    job = recall_run("batchnorm", steps=STEPS, seeds=SEEDS).model_dump()
    assert {name: config[name] for name in job} == job
    assert (config["device"], config["threads"]) == ("cpu", 1)
    metrics = pd.read_csv(whole.out / "metrics.csv")
    assert metrics["seed"].tolist() == SEEDS
    assert metrics["diverged_at"].isna().all()
    assert metrics["parameters"].tolist() == [PARAMETERS] * 2
    curves = pd.read_csv(whole.out / "curves.csv")
    for seed in SEEDS:
        curve = curves[curves["seed"] == seed]
        assert curve["step"].tolist() == list(range(3, STEPS + 1, 3))
        assert curve["train_loss"].between(0, 1000).all()
    timing = pd.read_csv(whole.timing, sep="\t")
    assert timing["steps"].tolist() == [STEPS]  # in step


@pytest.fixture(scope="module")
def diverged(tmp_path_factory) -> Recall:
    script = Recall(
        tmp_path_factory.mktemp("diverged"), "--recipe.task.loss-bound", "0.1", seeds=[3]
    )
    assert "diverged at step 1: the loss is not finite or above the bound" in script.succeed()
    return script


def test_a_diverged_model_says_when_and_has_its_curve(diverged):
    metrics = pd.read_csv(diverged.out / "metrics.csv")
    assert metrics["diverged_at"].tolist() == [1]
    curve = pd.read_csv(diverged.out / "curves.csv")
    assert curve["step"].tolist() == [1]
    assert curve["train_loss"].item() > 0.1
    assert diverged.newest() == 0


@pytest.fixture(scope="module")
def job(whole, diverged, tmp_path_factory) -> Path:
    """The files of one whose last seed diverged, of two."""
    folder = tmp_path_factory.mktemp("job")
    parts = [whole.out, diverged.out]
    shutil.copy(whole.out / "config.json", folder)
    for name in ("metrics.csv", "curves.csv"):
        pd.concat([pd.read_csv(p / name) for p in parts]).to_csv(folder / name, index=False)
    for name in ("models.safetensors", "moments.safetensors"):
        tensors = [safetensors.torch.load_file(part / name) for part in parts]
        safetensors.torch.save_file(tensors[0] | tensors[1], folder / name)
    return folder


def probe(place: Path, models: Path) -> processes.Script:
    """The script on a copy of a job's files, of a task that has no other."""
    shutil.copytree(models, place / "models" / "job", dirs_exist_ok=True)
    paths = {"name": "recall", "models": place / "models", "out": place / "probe"}
    recipe = RecallProbe(jobs={"job": CELL}, directions=2)
    arguments = processes.flags(recipe=recipe, **paths)
    return processes.Script("probe recall", arguments, place / "log")


@pytest.fixture(scope="module")
def probed(job, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("probed")
    probe(place, job).succeed()
    return place / "probe"


def test_models_are_measured_in_the_order_of_seeds_and_a_diverged_one_is_not(probed):
    names = ("metrics", "slices", "spectra")
    metrics, slices, spectra = (pd.read_csv(probed / f"{name}.csv") for name in names)
    assert metrics["seed"].tolist() == [2, 3, 10]
    for table in (metrics, slices, spectra):
        assert set(table[[*Cell._fields]].itertuples(index=False, name=None)) == {CELL}
    assert metrics["parameters"].tolist() == [PARAMETERS] * 3
    rows = by(metrics, "seed")
    measures = [m for m in MEASURES if m in metrics]
    assert len(measures) > 10
    assert rows[3]["diverged_at"] == 1
    assert all(math.isnan(rows[3][m]) for m in measures)
    for seed in (2, 10):
        assert math.isnan(rows[seed]["diverged_at"])
        assert all(math.isfinite(rows[seed][m]) for m in measures)
    assert rows[2]["loss"] != rows[10]["loss"]
    assert slices.groupby("seed").size().to_dict() == dict.fromkeys((2, 10), 40 + 21 + 40 + 2 * 21)
    sizes = spectra.groupby("where").size().to_dict()
    assert sizes == {"all": 16, "published": 16, "query": 16}
    assert set(spectra["seed"]) == {2, 10}


def test_the_share_of_adams_limit_is_at_the_rate_that_was_trained(probed):
    """38 over the rate: at beta1 = 0.9 (2 + 2 beta1) / (1 - beta1)."""
    row = by(pd.read_csv(probed / "metrics.csv"), "seed")[2]
    limit = 38 / CELL.learning_rate
    assert row["edge"] == pytest.approx(row["preconditioned_sharpness"] / limit, rel=1e-6)


@pytest.mark.parametrize(
    ("damage", "file"), [("cut", "models"), ("cut", "moments"), ("other width", "models")]
)
def test_a_damaged_model_is_an_error_that_names_it(tmp_path, whole, damage, file):
    script, folder = probe(tmp_path, whole.out), tmp_path / "models" / "job"
    weights = folder / f"{file}.safetensors"
    if damage == "other width":
        config = json.loads((folder / "config.json").read_text())
        config["task"]["n_embd"] = 16
        (folder / "config.json").write_text(json.dumps(config))
    else:
        weights.write_bytes(weights.read_bytes()[:-5])
    assert str(weights) in script.fail()
    assert not (tmp_path / "probe").exists()


@pytest.mark.parametrize("name", ["config.json", "metrics.csv"])
@pytest.mark.parametrize("content", [None, "{", "{}"])
def test_a_file_of_a_job_that_is_missing_or_damaged_is_an_error(tmp_path, whole, name, content):
    script, path = probe(tmp_path, whole.out), tmp_path / "models" / "job" / name
    path.unlink() if content is None else path.write_text(content)
    assert str(path) in script.fail()


class Decisive(processes.Script):
    """scripts/make_tables.py on made-up jobs, one a cell."""

    def __init__(self, place: Path) -> None:
        self.place, self.tables = place, place / "tables"
        self.jobs: dict[str, Cell] = {}
        super().__init__("make_tables recall", [], place / "log")

    def add(self, arm: str, *seeds: int, rate: float = 0.01, **measures: float) -> None:
        cell = Cell("recall", arm, rate)
        name = f"{cell}-{seeds[0]}"
        self.jobs[name] = cell
        models, key = self.place / "models" / name, cell._asdict()
        models.mkdir(parents=True)
        row = dict.fromkeys(MEASURES, 1.0) | {"diverged_at": None, "parameters": 7} | measures
        self.append("metrics", [{**key, "seed": s, **row} for s in seeds])
        cuts = [(s, k, o) for s in seeds for k in ("published", "filter") for o in (-0.5, 0, 0.5)]
        at = {**key, "direction": 0}
        self.append(
            "slices",
            [
                {**at, "seed": s, "kind": k, "alpha": o, "offset": o, "loss": 1 + o * o}
                for s, k, o in cuts
            ],
        )
        value = {**key, "where": "query", "index": 0, "value": 2.0}
        self.append("spectra", [{**value, "seed": s} for s in seeds])
        lines = ["seed,step,train_loss,val_loss", *(f"{seed},5,2.5," for seed in seeds)]
        (models / "curves.csv").write_text("\n".join(lines) + "\n")

    def append(self, table: str, rows: Sequence[Mapping[str, Any]] | pd.DataFrame) -> None:
        """To what was probed of the task."""
        path = self.place / "probes" / "recall" / f"{table}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [pd.read_csv(path)] if path.is_file() else []
        pd.concat([*parts, pd.DataFrame(rows)]).to_csv(path, index=False)

    def collect(self) -> str:
        """Run to the end; the log."""
        shown = {"task": "recall", "learning_rate": 0.01}
        recipe = RecallTables(jobs=self.jobs, probes=["recall"], **shown, level=0.95)
        paths = {"models": self.place / "models", "probes": self.place / "probes"}
        flags = processes.flags(recipe=recipe, out=self.tables, **paths)
        self.arguments = ["recall", *flags]
        return self.succeed()

    def read(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.tables / f"{name}.csv")


COLUMNS = "response,contrast,kind,n,effect,low,high,joint_low,joint_high,alpha"


def test_an_incomplete_crossing_names_what_is_missing_and_has_no_effects(tmp_path):
    script = Decisive(tmp_path)
    for arm in ("layernorm", "layernorm_plain", "manual_l2", "none"):
        script.add(arm, 1, 2)
    log = script.collect()
    assert "no factor effects: no arm has these levels of center, radius, gain, bias: " in log
    trained = {
        ("yes", "sqrt(d)", "yes", "yes"),
        ("yes", "sqrt(d)", "no", "no"),
        ("no", "1", "no", "no"),
    }
    yes, radii = ("no", "yes"), ("sqrt(d)", "1")
    for cell in [(c, r, g, b) for c in yes for r in radii for g in yes for b in yes]:
        assert (", ".join(cell) in log) == (cell not in trained), cell
    assert "learned" not in log
    assert (tmp_path / "tables" / "factors.csv").read_text() == f"{COLUMNS}\n"
    assert len(script.read("runs")) == 8


def test_a_complete_crossing_has_its_effects_and_no_complaint(tmp_path):
    """A loss that a gain multiplies by 4, at one rate; another rate is not mixed in."""
    script = Decisive(tmp_path)
    for arm in ("layernorm", "layernorm_gain", "layernorm_bias", "layernorm_plain"):
        script.add(arm, 1, 2, 3, loss=4.0 if ARMS[arm].norm.gain else 1.0)
        script.add(arm, 1, rate=0.1, loss=100.0)
    script.add("none", 1)
    assert "no factor effects" not in script.collect()
    effects = by(script.read("factors"), "response", "contrast")
    row = effects["ln loss", "gain: yes − no"]
    assert row["effect"] == pytest.approx(1.386294361, abs=1e-8)  # ln 4
    assert (row["n"], row["kind"]) == (3, "main effect")
    assert effects["ln loss", "bias: yes − no"]["effect"] == pytest.approx(0, abs=1e-8)
    assert len(script.read("runs")) == 4 * 3 + 4 + 1


def test_measured_models_and_diverged_ones_are_collected(tmp_path, probed, job):
    script = Decisive(tmp_path)
    for arm in ("layernorm", "manual_l2"):
        script.add(arm, 1, 2)
    name = f"{CELL}-10"
    script.jobs[name] = CELL
    for table in ("metrics", "slices", "spectra"):
        script.append(table, pd.read_csv(probed / f"{table}.csv"))
    shutil.copytree(job, tmp_path / "models" / name)
    script.collect()
    runs = by(script.read("runs"), "arm", "seed")
    sound, lost = runs["batchnorm", 10], runs["batchnorm", 3]
    assert sound["learning_rate"] == lost["learning_rate"] == 0.01
    assert math.isnan(sound["diverged_at"])
    assert lost["diverged_at"] == 1
    assert all(math.isfinite(sound[m]) for m in MEASURES)
    assert all(math.isnan(lost[m]) for m in MEASURES)
    assert sound["sharpness"] == by(pd.read_csv(probed / "metrics.csv"), "seed")[10]["sharpness"]
    row = by(script.read("cells"), "arm", "measure")["batchnorm", "loss"]
    mean = (sound["loss"] + runs["batchnorm", 2]["loss"]) / 2
    assert (row["n"], row["diverged"], row["mean"]) == (2, 1, pytest.approx(mean, rel=1e-8))
    slices = script.read("slices")
    assert len(slices[slices["arm"] == "batchnorm"]) == len(pd.read_csv(probed / "slices.csv"))
    spectra = script.read("spectra")
    assert set(spectra.loc[spectra["arm"] == "batchnorm", "seed"]) == {2, 10}
    curves = script.read("curves")
    assert list(curves.columns) == [*Cell._fields, "seed", "step", "train_loss"]
    assert curves[(curves["arm"] == "batchnorm") & (curves["seed"] == 3)]["step"].tolist() == [1]
