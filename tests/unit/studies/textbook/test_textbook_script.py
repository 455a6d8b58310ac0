"""The script make_tables.py for the textbook study, on tiny models."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import processes
import pytest
import stored_models
import torch
from recall_recipes import by
from recipes import DATA, recipe

from normscope.nn.recipe import Placement
from normscope.studies.textbook.grid import TextbookTables
from normscope.train.trained import transformers

WINDOWS, T = 3, 8
NAMES = ["blocks.0.attention.before", "blocks.0.mlp.before", "final_norm"]


def write(place: Path, arm: str, seeds: Sequence[int], placement: Placement = "pre") -> Path:
    """The files of a job whose parameters are not at their initial values."""
    stack = recipe(arm, placement, seeds=seeds)
    return stored_models.write(place / f"{arm}-{seeds[0]}", stack, [2.0] * len(seeds))


def make(place: Path, data: Path, *jobs: Path) -> str:
    """Make the tables of these jobs, in ``place/textbook``; returns the log."""
    recipe = TextbookTables(models=[job.name for job in jobs], windows=WINDOWS, level=0.95)
    paths = {"models": place, "probes": place, "data": data, "out": place / "textbook"}
    arguments = processes.flags(recipe=recipe, **paths)
    return processes.Script("make_tables textbook", arguments, place / "log").succeed()


@pytest.fixture(scope="module")
def measured(tmp_path_factory, data) -> Path:
    """Tables and models of two jobs with three seeds."""
    place = tmp_path_factory.mktemp("measured")
    assert make(place, data, *(write(place, "layernorm", s) for s in ([10, 2], [1]))) == ""
    return place


def test_every_norm_of_every_seed_has_a_row(measured):
    table = pd.read_csv(measured / "textbook" / "affine.csv")
    keys = list(table[["seed", "layer", "index"]].itertuples(index=False, name=None))
    assert keys == [(seed, name, i) for seed in (2, 10, 1) for i, name in enumerate(NAMES)]
    assert set(table["tokens"]) == {WINDOWS * T}
    assert table.notna().all(axis=None)


def test_trained_norms_are_measured_on_windows_spread_over_the_validation_split(measured):
    """At the first norm, from the embeddings of windows cut by hand."""
    model = transformers(measured / "layernorm-10")[1][2]
    val = DATA.val.astype(int)
    starts = [0, (len(val) - 1 - T) // 2, len(val) - 1 - T]
    tokens = torch.tensor(np.stack([val[i : i + T] for i in starts]))
    x = model.double().token_embedding(tokens) + model.position_embedding.weight
    std = x.std(-1, correction=0)
    row = by(pd.read_csv(measured / "textbook" / "affine.csv"), "seed", "layer")[2, NAMES[0]]
    expected = (std / (std.square() + 1e-5).sqrt()).mean().item()
    assert row["std_before"] == pytest.approx(expected, rel=1e-8)
