"""The scripts of the Jacobian study on tiny models: sound, diverged, without norms."""

from pathlib import Path
from typing import Any

import pandas as pd
import processes
import pytest
import stored_models
import torch
from jacobian_recipes import grid
from recall_recipes import by
from recipes import DATA

from normscope.studies.jacobian.grid import Jacobian
from normscope.studies.jacobian.recipe import JacobianProbe
from normscope.studies.jacobian.tables import LAYERS, MEASURES
from normscope.train.trained import transformers

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
    assert list(layers.columns) == [column.name for column in LAYERS]
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
