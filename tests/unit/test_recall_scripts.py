"""The scripts of the decisive test: killed, fed what is odd."""

import json
import math
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import processes
import pytest
from recall_recipes import by, recall_run

from normscope.nn.arms import ARMS
from normscope.schema import rate_name
from normscope.studies.recall.measures import MEASURES
from normscope.studies.recall.recipe import RecallProbe, RecallTables

OUTPUTS = ("model.safetensors", "config.json", "curve.csv", "metrics.json")
STEPS = 150  # with a checkpoint after each
CELL = "recall-batchnorm-0.01"


class Recall(processes.Script):
    """scripts/recall.py on a small task, into one directory."""

    def __init__(self, place: Path, *more: str, seed: int = 1) -> None:
        self.out, self.checkpoints = place / "out", place / "checkpoints"
        self.timing = place / "timing.tsv"
        run = recall_run("batchnorm", steps=STEPS, seed=seed)
        paths = {"out": self.out, "checkpoints": self.checkpoints, "timing": self.timing}
        arguments = processes.flags(recipe=run, checkpoint_every=1, **paths)
        super().__init__("recall_train", [*arguments, *more], place / "log")

    def outputs(self) -> dict[str, bytes]:
        return {name: (self.out / name).read_bytes() for name in OUTPUTS}

    def newest(self) -> int:
        return max((int(p.stem.split("-")[1]) for p in self.checkpoints.glob("step-*")), default=0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Recall:
    """A run that nothing interrupts, started as people start it."""
    script = Recall(tmp_path_factory.mktemp("whole"))
    command = [sys.executable, str(script.path), *script.arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"step {STEPS}/{STEPS}" in done.stderr
    assert script.newest() == STEPS
    return script


def test_the_outputs_say_what_was_trained_and_how(whole):
    config = json.loads(whole.outputs()["config.json"])
    run = recall_run("batchnorm", steps=STEPS, seed=1).model_dump()
    assert {name: config[name] for name in run} == run
    assert config["threads"] == 1
    metrics = json.loads(whole.outputs()["metrics.json"])
    # 20 pairs and queries, attention, MLP, two norms with gain and bias, head, at width 8
    parameters = 20 * 8 + (4 * 64 + 4 * 8) + (2 * 4 * 64 + 5 * 8) + 4 * 8 + (4 * 8 + 4)
    assert metrics == {"diverged_at": None, "parameters": parameters}
    curve = pd.read_csv(whole.out / "curve.csv")
    assert curve["step"].tolist() == list(range(3, STEPS + 1, 3))
    assert curve["train_loss"].between(0, 1000).all()
    timing = pd.read_csv(whole.timing, sep="\t")
    assert timing["steps"].tolist() == [STEPS]


def test_a_killed_script_started_again_writes_the_same_bytes(tmp_path, whole):
    killed = Recall(tmp_path)
    for step in (1, 30):
        assert killed.kill_when(lambda step=step: killed.newest() >= step) == -signal.SIGKILL
        assert killed.newest() >= step
        assert not killed.out.exists()
    killed.kill_when((killed.out / "model.safetensors").exists)
    killed.succeed()
    assert killed.outputs() == whole.outputs()
    assert killed.newest() == STEPS


@pytest.fixture(scope="module")
def diverged(tmp_path_factory) -> Recall:
    script = Recall(tmp_path_factory.mktemp("diverged"), "--recipe.task.loss-bound", "0.1", seed=2)
    assert "diverged at step 1: the loss is not finite or above the bound" in script.succeed()
    return script


def test_a_diverged_run_says_when_and_has_its_curve(diverged):
    assert json.loads(diverged.outputs()["metrics.json"])["diverged_at"] == 1
    curve = pd.read_csv(diverged.out / "curve.csv")
    assert curve["step"].tolist() == [1]
    assert curve["train_loss"].item() > 0.1
    assert diverged.newest() == 0


def probe(place: Path, *runs: Path, seeds: Sequence[int] = (1, 2)) -> processes.Script:
    """The script, on models whose folders are copied to where the workflow has them."""
    for run, seed in zip(runs, seeds, strict=False):
        shutil.copytree(run, place / f"cell-{seed}", dirs_exist_ok=True)
    recipe = RecallProbe(seeds=list(seeds)[: len(runs)], directions=2)
    arguments = processes.flags(recipe=recipe, models=place / "cell", out=place / "probe")
    return processes.Script("recall_probe", arguments, place / "log")


def tables_of(place: Path) -> list[pd.DataFrame]:
    return [pd.read_csv(place / f"{name}.csv") for name in ("metrics", "slices", "spectra")]


@pytest.fixture(scope="module")
def probed(whole, diverged, tmp_path_factory) -> Path:
    """A cell with a sound seed and one that diverged."""
    place = tmp_path_factory.mktemp("probed")
    probe(place, whole.out, diverged.out).succeed()
    return place / "probe"


def test_a_diverged_model_has_a_row_without_measures(probed, diverged):
    metrics, slices, spectra = tables_of(probed)
    sound, lost = metrics.to_dict("records")
    assert (sound["seed"], lost["seed"]) == (1, 2)
    parameters = json.loads(diverged.outputs()["metrics.json"])["parameters"]
    assert metrics["parameters"].tolist() == [parameters] * 2
    assert math.isnan(sound["diverged_at"])
    assert lost["diverged_at"] == 1
    measures = [m for m in MEASURES if m in metrics]
    assert len(measures) > 10
    assert all(math.isfinite(sound[m]) for m in measures)
    assert all(math.isnan(lost[m]) for m in measures)
    assert set(slices["seed"]) == set(spectra["seed"]) == {1}
    assert len(slices) == 40 + 21 + 40 + 2 * 21
    assert spectra.groupby("where").size().to_dict() == {"all": 8, "published": 8, "query": 8}


@pytest.mark.parametrize("damage", ["cut", "other width"])
def test_a_damaged_model_is_an_error_that_names_it(tmp_path, whole, damage):
    script, run = probe(tmp_path, whole.out), tmp_path / "cell-1"
    model = run / "model.safetensors"
    if damage == "other width":
        config = json.loads((run / "config.json").read_text())
        config["task"]["n_embd"] = 16
        (run / "config.json").write_text(json.dumps(config))
    else:
        model.write_bytes(model.read_bytes()[:-5])
    assert str(model) in script.fail()
    assert not (tmp_path / "probe").exists()


@pytest.mark.parametrize("name", ["config.json", "metrics.json"])
@pytest.mark.parametrize("content", [None, "{", "{}"])
def test_a_file_of_a_run_that_is_missing_or_damaged_is_an_error(tmp_path, whole, name, content):
    script, path = probe(tmp_path, whole.out), tmp_path / "cell-1" / name
    path.unlink() if content is None else path.write_text(content)
    assert str(path) in script.fail()


class Decisive(processes.Script):
    """scripts/recall_tables.py on made-up cells of one model a seed."""

    def __init__(self, place: Path) -> None:
        self.place, self.tables = place, place / "tables"
        self.cells: dict[str, list[int]] = {}
        super().__init__("recall_tables", [], place / "log")

    def add(self, arm: str, *seeds: int, rate: float = 0.01, **measures: float) -> None:
        cell = self.place / "recall" / f"recall-{arm}-{rate_name(rate)}"
        cell.mkdir(parents=True)
        self.cells[cell.name] = list(seeds)
        row = dict.fromkeys(MEASURES, 1.0) | {"diverged_at": None, "parameters": 7} | measures
        pd.DataFrame([{"seed": s, **row} for s in seeds]).to_csv(cell / "metrics.csv", index=False)
        cuts = [(s, k, o) for s in seeds for k in ("published", "filter") for o in (-0.5, 0, 0.5)]
        pd.DataFrame(
            [
                {"seed": s, "kind": k, "direction": 0, "alpha": o, "offset": o, "loss": 1 + o * o}
                for s, k, o in cuts
            ]
        ).to_csv(cell / "slices.csv", index=False)
        spectrum = [{"seed": s, "where": "query", "index": 0, "value": 2.0} for s in seeds]
        pd.DataFrame(spectrum).to_csv(cell / "spectra.csv", index=False)
        for seed in seeds:
            run = self.place / "runs" / f"{cell.name}-{seed}"
            run.mkdir(parents=True)
            (run / "curve.csv").write_text("step,train_loss\n5,2.5\n")

    def collect(self) -> str:
        """Run to the end; the log."""
        recipe = RecallTables(cells=self.cells, task="recall", learning_rate=0.01, level=0.95)
        paths = {"models": self.place / "runs", "probes": self.place / "recall"}
        self.arguments = processes.flags(recipe=recipe, out=self.tables, **paths)
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
    there = {
        ("yes", "sqrt(d)", "yes", "yes"),
        ("yes", "sqrt(d)", "no", "no"),
        ("no", "1", "no", "no"),
    }
    yes, radii = ("no", "yes"), ("sqrt(d)", "1")
    for cell in [(c, r, g, b) for c in yes for r in radii for g in yes for b in yes]:
        assert (", ".join(cell) in log) == (cell not in there), cell
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
    found = by(script.read("factors"), "response", "contrast")
    row = found["ln loss", "gain: yes − no"]
    assert row["effect"] == pytest.approx(1.386294361, abs=1e-8)  # ln 4
    assert (row["n"], row["kind"]) == (3, "main effect")
    assert found["ln loss", "bias: yes − no"]["effect"] == pytest.approx(0, abs=1e-8)
    assert len(script.read("runs")) == 4 * 3 + 4 + 1


def test_measured_models_and_diverged_ones_are_collected(tmp_path, probed, whole, diverged):
    script = Decisive(tmp_path)
    for arm in ("layernorm", "manual_l2"):
        script.add(arm, 1, 2)
    cell = tmp_path / "recall" / CELL
    shutil.copytree(probed, cell)
    script.cells[CELL] = [1, 2]
    for run, seed in ((whole, 1), (diverged, 2)):
        shutil.copytree(run.out, tmp_path / "runs" / f"{CELL}-{seed}")
    script.collect()
    runs = by(script.read("runs"), "arm", "seed")
    sound, lost = runs["batchnorm", 1], runs["batchnorm", 2]
    assert sound["learning_rate"] == lost["learning_rate"] == 0.01
    assert math.isnan(sound["diverged_at"])
    assert lost["diverged_at"] == 1
    assert all(math.isfinite(sound[m]) for m in MEASURES)
    assert all(math.isnan(lost[m]) for m in MEASURES)
    assert sound["sharpness"] == by(pd.read_csv(cell / "metrics.csv"), "seed")[1]["sharpness"]
    row = by(script.read("cells"), "arm", "measure")["batchnorm", "loss"]
    assert (row["n"], row["diverged"], row["mean"]) == (1, 1, sound["loss"])
    slices = script.read("slices")
    assert len(slices[slices["arm"] == "batchnorm"]) == len(pd.read_csv(cell / "slices.csv"))
    spectra = script.read("spectra")
    assert set(spectra.loc[spectra["arm"] == "batchnorm", "seed"]) == {1}
    curves = script.read("curves")
    assert curves[(curves["arm"] == "batchnorm") & (curves["seed"] == 2)]["step"].tolist() == [1]
