"""A model taken apart at its norms, against finite differences and twins; and the scripts."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import processes
import pytest
import stored_models
import torch
from jacobian_recipes import grid
from pandas import DataFrame
from recall_recipes import by, move
from recipes import DATA
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.measure.decomposition import published_quantities
from normscope.measure.names import SURROGATES
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Feedback, Model, Placement
from normscope.studies.jacobian.grid import Jacobian
from normscope.studies.jacobian.probe import (
    Batch,
    at_norms,
    backprop,
    decompose_norms,
    parameter_gradient,
    surrogate_gradients,
)
from normscope.studies.jacobian.recipe import JacobianProbe
from normscope.studies.jacobian.tables import GRADIENTS, MEASURES, WHICH_NORM
from normscope.studies.jacobian.tables import LAYERS as DECLARED
from normscope.train.trained import transformers

V, T = 5, 6
TOKEN_ARMS = ["layernorm", "rmsnorm_plain", "manual_l2", "centered_scalenorm_affine"]
BLOCKS = [f"blocks.{i}.{branch}" for i in range(2) for branch in ("attention", "mlp")]
LAYERS: dict[Placement, list[str]] = {
    "pre": [*(f"{branch}.before" for branch in BLOCKS), "final_norm"],
    "post": [f"{branch}.outside" for branch in BLOCKS],
    "peri": [
        *(f"{branch}.{where}" for branch in BLOCKS for where in ("before", "after")),
        "final_norm",
    ],
    "hybrid": [
        *(
            f"blocks.{i}.attention.{where}"
            for i in range(2)
            for where in ("f.q_norm", "f.k_norm", "f.v_norm", "outside")
        ),
        "final_norm",
    ],
}
PLACEMENTS = pytest.mark.parametrize("placement", LAYERS)


def transformer(arm: str = "layernorm", placement: Placement = "pre", **kind: Any) -> Transformer:
    """Two blocks in float64, every parameter and statistic moved; the same for every kind."""
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 8, "block_size": T, "tied_head": False}
    model = Transformer(Model.model_validate(sizes | kind), ARMS[arm].norm, placement, V)
    move(model.double().eval())
    for name, t in model.state_dict().items():
        if name.endswith(("running_mean", "running_var")):
            t.uniform_(0.5, 1.5)
        elif "feedback" in name:
            t.mul_(20)  # as large as the weights
    return model


def twin(model: Transformer, *built: Any, **kind: Any) -> Transformer:
    """Another kind of model with the same weights."""
    other, weights = transformer(*built, **kind), dict(model.named_parameters())
    assert set(weights) == set(dict(other.named_parameters()))
    with torch.no_grad():
        for name, p in other.named_parameters():
            p.copy_(weights[name])
    return other


def batch(seed: int = 0, windows: int = 3) -> Batch:
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randint(V, (windows, T + 1), generator=g)
    return tokens[:, :-1], tokens[:, 1:]


def loss_of(model: nn.Module, windows: Batch) -> Tensor:
    """Mean over tokens of -log p, written out."""
    logits, targets = model(windows[0]), windows[1]
    return -logits.log_softmax(-1).gather(-1, targets[..., None]).mean()


def gradient(model: nn.Module, windows: Batch) -> Tensor:
    """By backward() into .grad."""
    model.zero_grad(set_to_none=True)
    loss_of(model, windows).backward()
    parts = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    model.zero_grad(set_to_none=True)
    return torch.cat(parts)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    ("arm", "placement"),
    [
        ("layernorm", "pre"),
        ("layernorm", "peri"),
        ("rmsnorm", "post"),
        ("batchnorm", "pre"),
        ("dyt", "peri"),
        ("rmsnorm", "hybrid"),
    ],
)
def test_what_reaches_a_norm_is_the_change_of_the_loss_with_its_output(arm, placement):
    """Central differences, along a random direction."""
    model, h = transformer(arm, placement), 1e-5
    for i, (name, seen) in enumerate(at_norms(model, batch()).items()):
        layer = model.get_submodule(name)
        g = torch.Generator().manual_seed(i)
        direction = torch.randn(seen.dy.shape, generator=g, dtype=torch.float64)
        inputs, losses = [], []
        for step in (h, -h):

            def push(_, args, output, step=step, direction=direction, inputs=inputs):
                inputs.append(args[0])
                return output + step * direction.view_as(output)

            handle = layer.register_forward_hook(push)
            losses.append(loss_of(model, batch()).item())
            handle.remove()
        slope = (losses[0] - losses[1]) / (2 * h)
        assert float((seen.dy * direction).sum()) == pytest.approx(slope, rel=1e-6)
        close(seen.x, inputs[0].flatten(0, -2))


@pytest.mark.parametrize("feedback", ["fa", "dfa"])
def test_backprop_is_the_plain_models_gradient_and_is_undone_even_after_an_exception(feedback):
    model = transformer(feedback=feedback)
    plain = gradient(twin(model), batch())
    first = parameter_gradient(model, batch())
    assert F.cosine_similarity(first, plain, dim=0) < 0.9
    with backprop(model):
        close(parameter_gradient(model, batch()), plain)
    assert torch.equal(parameter_gradient(model, batch()), first)
    with pytest.raises(KeyError), backprop(model):
        raise KeyError
    assert torch.equal(parameter_gradient(model, batch()), first)


@pytest.mark.parametrize("arm", ["layernorm", "rmsnorm", "dyt"])
@pytest.mark.parametrize("feedback", ["backprop", "fa"])
def test_every_layer_has_a_row_a_signal_and_layernorm_one_as_published(arm, feedback):
    rows = decompose_norms(transformer(arm, feedback=feedback), batch(), batch(1, windows=2))
    signals = ["own"] if feedback == "backprop" else ["own", "backprop"]
    expected = [
        (layer, signal, "corrected", 3 * T) for signal in signals for layer in LAYERS["pre"]
    ]
    if arm.startswith("layernorm"):
        expected += [(layer, "own", "published", 2 * T) for layer in LAYERS["pre"]]
    assert expected == [(r["layer"], r["signal"], r["variant"], r["tokens"]) for r in rows]
    which = {column.name for column in WHICH_NORM} | {"tokens"}
    assert all(which <= set(row) <= {*which, *MEASURES} for row in rows)
    assert all(math.isfinite(float(row[m])) for row in rows for m in MEASURES if m in row)


def test_published_rows_are_of_the_training_batch_and_the_gradient_without_gain():
    model = transformer(feedback="fa")
    rows = by(DataFrame(decompose_norms(model, batch(), batch(1))), "variant", "signal", "layer")
    for name, seen in at_norms(model, batch(1)).items():
        row = rows["published", "own", name]
        assert {k: row[k] for k in published_quantities(*seen)} == pytest.approx(
            published_quantities(*seen), rel=1e-12
        )
        assert row["r_mean"] != pytest.approx(rows["corrected", "own", name]["r_mean"], rel=1e-3)


@PLACEMENTS
@pytest.mark.parametrize("arm", TOKEN_ARMS)
def test_the_closed_form_is_autograds_at_every_norm_of_a_model(arm, placement):
    rows = decompose_norms(transformer(arm, placement, feedback="fa"), batch(), batch(1))
    corrected = [row for row in rows if row["variant"] == "corrected"]
    assert [row["layer"] for row in corrected] == 2 * LAYERS[placement]
    assert {row["d"] for row in corrected if "f." in str(row["layer"])} <= {4}  # of a head
    assert all(float(row["error_closed_form"]) < 1e-12 for row in corrected)
    without_gain = [float(row["error_without_gain"]) for row in corrected]
    if ARMS[arm].norm.gain:
        assert min(without_gain) > 0.05
    else:
        assert max(without_gain) < 1e-12


@pytest.mark.parametrize("arm", ["batchnorm", "batchnorm_plain", "dyt", "derf"])
def test_a_layer_without_token_statistics_is_compared_with_passing_the_gradient_on(arm):
    """In evaluation BatchNorm and the pointwise maps are diagonal: dx = f'(x) dy."""
    model = transformer(arm)
    rows = by(DataFrame(decompose_norms(model, batch(), batch(1))), "layer")
    assert list(rows) == LAYERS["pre"]
    for name, (x, dy) in at_norms(model, batch()).items():
        h, layer = 1e-6, model.get_submodule(name)
        exact = ((layer(x + h) - layer(x - h)) / (2 * h) * dy).detach().numpy()
        g = dy.numpy()
        lengths = np.linalg.norm(g, axis=-1) * np.linalg.norm(exact, axis=-1)
        row = rows[name]
        cosine = np.mean((g * exact).sum(-1) / lengths)
        assert row["cos_straight_through"] == pytest.approx(cosine, rel=1e-6)
        error = np.linalg.norm(g - exact) / np.linalg.norm(exact)
        assert row["error_straight_through"] == pytest.approx(error, rel=1e-6)
        assert "r_mean" not in row


def test_alignment_is_the_mean_cosine_with_the_plain_models_gradient():
    model = transformer(feedback="dfa")
    signal, true = at_norms(model, batch()), at_norms(twin(model), batch())
    rows = [row for row in decompose_norms(model, batch(), batch()) if "alignment" in row]
    assert [row["layer"] for row in rows] == LAYERS["pre"]
    for row in rows:
        a, b = (seen[str(row["layer"])].dy.numpy() for seen in (signal, true))
        cosines = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
        assert row["alignment"] == pytest.approx(cosines.mean(), abs=1e-12)
    assert rows[-1]["alignment"] == pytest.approx(1, abs=1e-12)  # dfa is exact above the blocks
    assert abs(float(rows[0]["alignment"])) < 0.95


@pytest.mark.parametrize(
    ("arm", "placement", "feedback"),
    [("layernorm", "pre", "fa"), ("rmsnorm_affine", "post", "backprop")],
)
def test_surrogate_gradients_are_of_a_model_that_is_built_with_them(
    arm: str, placement: Placement, feedback: Feedback
):
    model = transformer(arm, placement, feedback=feedback)
    rows = surrogate_gradients(model, batch())
    signals: list[tuple[str, Feedback]] = [("own", feedback)]
    if feedback == "fa":
        signals.append(("backprop", "backprop"))
    places = ["all", "blocks", "final"] if placement == "pre" else ["all", "blocks"]
    expected = []
    for (signal, kind), rule, place in product(signals, SURROGATES, places):
        exact = gradient(twin(model, arm, placement, feedback=kind), batch()).numpy()
        choices = {"feedback": kind, "norm_backward": rule, "surrogates_in": place}
        other = gradient(twin(model, arm, placement, **choices), batch()).numpy()
        if kind == "fa":  # drawn once for a seed, whatever else is chosen
            built = transformer(arm, placement, **choices).state_dict()
            assert all(torch.equal(t, built[k]) for k, t in model.state_dict().items())
        cosine = other @ exact / np.linalg.norm(other) / np.linalg.norm(exact)
        error = np.linalg.norm(other - exact) / np.linalg.norm(exact)
        assert error > 1e-3
        expected.append([signal, rule, place, cosine, error])
    assert [list(row) for row in rows] == [[column.name for column in GRADIENTS[1:]]] * len(
        expected
    )
    for row, values in zip(rows, expected, strict=True):
        assert list(row.values())[:3] == values[:3]
        assert list(row.values())[3:] == pytest.approx(values[3:], rel=1e-10)


NAMES = ["blocks.0.attention.before", "blocks.0.mlp.before", "final_norm"]
WINDOWS = 3
EXACT = "small_2-layernorm-softmax-fa-exact-all-1.0-0.0-{}-1"


def with_surrogates(**block: Any) -> Jacobian:
    """LayerNorm under feedback alignment, exact and with two surrogates; 3 seeds, 2 rates."""
    runs = {
        "protocol": "small_2",
        "arms": ["layernorm"],
        "attention": ["softmax"],
        "feedback": ["fa"],
        "norm_backward": ["exact", "center_scale", "straight_through"],
        "learning_rates": [0.01, 0.1],
        "seeds": [1, 2, 3],
    }
    return grid(published="published", runs=[runs | block])


def run(script: str, place: Path, **flags: Any) -> str:
    """One of the scripts, run to its end; its log."""
    return processes.Script(f"{script} jacobian", processes.flags(**flags), place / "log").succeed()


def probe(place: Path, data: Path, name: str) -> str:
    """Take the models of a training job apart."""
    paths = {"models": place / "models", "data": data, "out": place / "probes" / name}
    return run("probe", place, recipe=JacobianProbe(windows=WINDOWS), name=name, **paths)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Models of the grid, of which seed 3 of the exact ones diverged.

    Losses are 1/2, 9/16, ... at a rate of 0.01, and 1/2 higher at the other rate.
    """
    place = tmp_path_factory.mktemp("jacobian")
    trained = with_surrogates().trainings()
    for i, name in enumerate(name for name in trained if "-0.01-" in name):
        losses: list[float | None] = [0.5 + (3 * i + k) / 16 for k in range(3)]
        if name == EXACT.format(0.01):
            losses[2] = None
        other = name.replace("-0.01-", "-0.1-")
        worse = [None if loss is None else loss + 0.5 for loss in losses]
        stored_models.write(place / "models" / name, trained[name], losses)
        stored_models.write(place / "models" / other, trained[other], worse)
    return place


@pytest.fixture(scope="module")
def said(place, data) -> str:
    """What the script says of the models at the better rate; it probes those of both rates."""
    probe(place, data, EXACT.format(0.1))
    return probe(place, data, EXACT.format(0.01))


def test_sound_models_are_taken_apart_and_a_diverged_one_is_named(place, said):
    assert "seed 3: diverged at step 4; its rows stay empty" in said
    layers = pd.read_csv(place / "probes" / EXACT.format(0.01) / "layers.csv")
    assert list(layers.columns) == [column.name for column in DECLARED]
    sound, lost = layers[layers["seed"] < 3], layers[layers["seed"] == 3]
    kinds = [("own", "corrected"), ("backprop", "corrected"), ("own", "published")]
    keys = ["seed", "signal", "variant", "layer"]
    assert list(sound[keys].itertuples(index=False, name=None)) == [
        (seed, *kind, layer) for seed in (1, 2) for kind in kinds for layer in NAMES
    ]
    assert set(sound["tokens"]) == {WINDOWS * 8}
    corrected = sound[sound["variant"] == "corrected"]
    assert corrected[[m for m in MEASURES if m != "alignment"]].notna().all(axis=None)
    assert corrected["error_closed_form"].max() < 1e-12
    assert (corrected["alignment"].notna() == (corrected["signal"] == "own")).all()
    assert lost["layer"].tolist() == NAMES
    assert set(lost["variant"]) == {"corrected"}
    assert lost[["tokens", *MEASURES]].isna().all(axis=None)


def test_measures_are_taken_on_validation_windows_spread_over_the_split(place, said):
    """The sigma of the first norm, from the embeddings of windows cut by hand."""
    name = EXACT.format(0.01)
    model = transformers(place / "models" / name)[1][1]
    val = torch.from_numpy(DATA.val.astype(int))
    starts = [0, (len(val) - 1 - 8) // 2, len(val) - 1 - 8]
    tokens = torch.stack([val[i : i + 8] for i in starts])
    embedded = model.double().token_embedding(tokens) + model.position_embedding.weight
    sigma = (embedded.var(-1, correction=0) + 1e-5).sqrt()
    layers = pd.read_csv(place / "probes" / name / "layers.csv")
    row = by(layers, "seed", "signal", "variant", "layer")[1, "own", "corrected", NAMES[0]]
    assert row["sigma_mean"] == pytest.approx(sigma.mean().item(), rel=1e-8)
