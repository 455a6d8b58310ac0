"""What is measured of models made by hand, whose loss, ranks and slices are known; the scripts."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import processes
import pytest
import torch
from recall_recipes import KINDS, by, dense_hessian, move, recall_run, task
from scipy import stats
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.nn.arms import ARMS
from normscope.studies.recall import probe as measure
from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.probe import curvature, evaluate, slices, spectra
from normscope.studies.recall.recipe import Cell, RecallProbe, RecallTables, Task
from normscope.studies.recall.tables import MEASURES, RISE

ALPHA = 1e-4
TASKS = pytest.mark.parametrize("kind", KINDS)
E, A = 4, 5


def zeros(t: Task) -> RecallModel:
    """Without a norm, every parameter 0."""
    model = RecallModel(t, ARMS["none"].norm).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    return model


def solver(beta: float, gamma: float) -> tuple[RecallModel, Task]:
    """Recall, solved by attention alone.

    Channels: entity of a pair, entity of a query, attribute. The query scores beta with the pair of
    its entity and 0 with all else; the head multiplies the attribute by gamma.
    """
    d = 2 * E + A
    t = task("recall", entities=E, attributes=A, n_embd=d)
    model = zeros(t)
    e, a = torch.arange(E), torch.arange(A)
    with torch.no_grad():
        for entity in range(E):
            pairs = model.embedding.weight[entity * A : (entity + 1) * A]
            pairs[:, entity] = 1
            pairs[a, 2 * E + a] = 1
        model.embedding.weight[E * A + e, E + e] = 1
        wq, wk, wv = model.attention.in_proj_weight.chunk(3)
        wq[e, E + e] = beta * math.sqrt(d)
        wk[e, e] = 1
        wv[2 * E + a, 2 * E + a] = 1
        model.attention.out_proj.weight.copy_(torch.eye(d))
        model.head.weight[a, 2 * E + a] = gamma
    return model, t


def batches_of(model: nn.Module, body: Callable[[], object]) -> list[Tensor]:
    """What the model is called with while the body runs."""
    seen: list[Tensor] = []
    handle = model.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    body()
    handle.remove()
    return seen


def test_a_model_that_solves_recall_has_the_loss_of_its_margin_and_is_at_chance_without_context():
    gamma = 3.0
    model, t = solver(beta=60.0, gamma=gamma)
    row = evaluate(model, t)
    assert row["accuracy"] == 1
    assert row["loss"] == pytest.approx(math.log1p((A - 1) * math.exp(-gamma)), rel=1e-4)
    # without context all logits are equal: the first class is guessed
    hits = round(row["accuracy_without_context"] * measure.SAMPLES)
    assert stats.binomtest(hits, measure.SAMPLES, t.chance).pvalue > ALPHA
    # and sharpening costs nothing: the temperature is where that loss is a millionth
    margin = math.log((A - 1) / math.expm1(1e-6))
    assert row["temperature"] == pytest.approx(gamma / margin, rel=1e-3)
    assert row["calibrated_loss"] == pytest.approx(1e-6, rel=0.01)


def assert_mean(measured: float, equally_likely: Sequence[float]) -> None:
    """The mean of SAMPLES draws, to four of its standard errors."""
    error = 4 * float(np.std(equally_likely)) / math.sqrt(measure.SAMPLES)
    assert measured == pytest.approx(float(np.mean(equally_likely)), abs=error)


def test_a_constant_guess_has_the_loss_of_its_bias_and_calibrates_to_chance():
    t = task("recall", entities=E, attributes=A)
    model = zeros(t)
    bias = torch.tensor([3.0, -1.0, 0.5, 0.0, 1.0])
    with torch.no_grad():
        model.head.bias.copy_(bias)
    row = evaluate(model, t)
    # the loss of each answer; answers are uniform
    assert_mean(row["loss"], (torch.logsumexp(bias, 0) - bias).tolist())
    hits = round(row["accuracy"] * measure.SAMPLES)
    assert stats.binomtest(hits, measure.SAMPLES, 1 / A).pvalue > ALPHA
    assert row["accuracy_without_context"] == row["accuracy"]
    # one factor fitted to as many samples gains or loses a few parts of 1 / n
    assert row["calibrated_loss"] == pytest.approx(math.log(A), abs=20 / measure.SAMPLES)
    assert row["temperature"] > 5


@TASKS
def test_temperature_and_loss_are_of_different_samples_the_same_for_every_arm(kind):
    seen = []
    for arm in ("layernorm", "none"):
        model = RecallModel(task(kind), ARMS[arm].norm).eval()
        seen.append(batches_of(model, lambda m=model: evaluate(m, task(kind))))
    fit, judged, alone = seen[0]
    assert len(fit) == len(judged) == len(alone) == measure.SAMPLES
    assert (fit != judged).any(1).float().mean() > 0.5
    assert torch.equal(alone, judged[:, -1:])
    assert all(torch.equal(a, b) for a, b in zip(*seen, strict=True))


def test_curvature_is_the_top_of_the_dense_hessian_on_one_batch():
    """The same holds with Adam's denominators, drawn here, and as a share of a limit of 7."""
    t = task("copy", entities=2, attributes=2, n_embd=4)
    torch.manual_seed(1)
    model = RecallModel(t, ARMS["batchnorm"].norm)
    move(model)
    model.eval()
    rows: list[measure.Row] = []
    g = torch.Generator().manual_seed(3)
    moments = {name: torch.rand(p.shape, generator=g) for name, p in model.named_parameters()}
    (tokens,) = batches_of(model, lambda: rows.append(curvature(model, t, moments, 7.0)))
    assert len(tokens) == measure.CURVATURE_SAMPLES
    roots = np.concatenate([v.sqrt().numpy().ravel() for v in moments.values()])
    model.double()
    dense = dense_hessian(model, lambda: F.cross_entropy(model(tokens), tokens[:, -1]))
    top = np.linalg.eigvalsh(dense)[-1]
    assert rows[0]["sharpness"] == pytest.approx(top, rel=1e-5)
    of_adam = np.linalg.eigvals(dense / (roots[:, None] + 1e-8)).real.max()
    assert rows[0]["preconditioned_sharpness"] == pytest.approx(of_adam, rel=1e-4)
    assert rows[0]["edge"] == pytest.approx(of_adam / 7, rel=1e-4)


def test_ranks_of_outputs_that_are_one_direction_per_token():
    """Of k orthogonal outputs that occur equally often, the covariance has k - 1 equal eigenvalues.

    There are 20 tokens, 16 pairs and 4 queries; each is a twentieth of the outputs, of length 3.
    """
    t = task("recall", n_embd=20, batch_size=2000)
    model = zeros(t)
    with torch.no_grad():
        model.embedding.weight.copy_(3 * torch.eye(20))
    ranks, rows = spectra(model, t)
    expected = {"query": 3, "squares_query": 3, "all": 19}
    expected = {f"effective_rank_{name}": rank for name, rank in expected.items()}
    assert ranks == pytest.approx(expected, rel=0.01)
    assert [(r["where"], r["index"]) for r in rows] == [
        (where, i) for where in ("published", "all", "query") for i in range(20)
    ]
    published, everywhere, query = np.array([r["value"] for r in rows], float).reshape(3, 20)
    n = 2000 * 5
    assert (published**2).sum() == pytest.approx(9 * n, rel=1e-9)
    np.testing.assert_allclose(published, 3 * math.sqrt(n / 20), rtol=0.15)
    np.testing.assert_allclose(everywhere[:19], 3 * math.sqrt(n / 20), rtol=0.15)
    np.testing.assert_allclose(query[:3], 3 * math.sqrt(measure.SAMPLES / 4), rtol=0.1)
    assert max(everywhere[19], query[3]) < 1e-6


def test_slices_are_at_the_offsets_that_they_say_and_leave_the_model_unchanged():
    """The published one is at the running sums of its 40 alphas, which end where they began."""
    torch.manual_seed(1)
    t = task("copy", entities=3, attributes=3)
    model = RecallModel(t, ARMS["layernorm"].norm).eval()
    before = {name: w.clone() for name, w in model.state_dict().items()}
    rows: list[measure.Row] = []
    batches = batches_of(model, lambda: rows.extend(slices(model, t, directions=2)))
    assert all(torch.equal(w, before[name]) for name, w in model.state_dict().items())
    tokens = batches[0]
    assert len(tokens) == t.batch_size
    assert all(torch.equal(x, tokens) for x in batches)
    table = pd.DataFrame(rows)
    parts = [part for _, part in table.groupby(["kind", "direction"], sort=False)]
    assert [(p["kind"].iloc[0], p["direction"].iloc[0], len(p)) for p in parts] == [
        *(("published", 0, 40), ("restored", 0, 61)),
        *(("filter", 0, 21), ("filter", 1, 21)),
    ]
    published, restored, first, second = parts
    coarse, fine = restored[:21], restored[21:]
    alphas = [-0.5 + i / 39 for i in range(40)]
    sums = [math.fsum(alphas[: i + 1]) for i in range(40)]
    assert list(published["alpha"]) == pytest.approx(alphas, abs=1e-12)
    assert list(published["offset"]) == pytest.approx(sums, abs=1e-12)
    assert list(fine["offset"]) == pytest.approx(sums, abs=1e-12)
    # one direction, two ways to get there
    assert list(fine["loss"]) == pytest.approx(list(published["loss"]), rel=1e-4)
    loss = F.cross_entropy(model(tokens), tokens[:, -1]).item()
    for part in (coarse, first, second):
        assert list(part["offset"]) == pytest.approx([-0.5 + i / 20 for i in range(21)])
        assert (part["alpha"] == part["offset"]).all()
        assert part.loc[part["offset"] == 0, "loss"].tolist() == [loss]
    ends = [part["loss"].iloc[i] for part in (first, second) for i in (0, -1)]
    assert len(set(ends)) == 4


STEPS = 30
CELL = Cell("recall", "batchnorm", 0.01)
JOBS = {"sound": CELL, "lost": CELL}
SOUND = recall_run("batchnorm", steps=STEPS, seeds=[10, 2])  # as text, 10 comes before 2
LOST = recall_run("batchnorm", steps=STEPS, seeds=[3], loss_bound=0.1)
# 20 pairs and queries, attention, MLP, two norms with gain and bias, head, at width 8
PARAMETERS = 20 * 8 + (4 * 64 + 4 * 8) + (2 * 4 * 64 + 5 * 8) + 4 * 8 + (4 * 8 + 4)
PROBED = [name for name in MEASURES if name != RISE.name]


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
