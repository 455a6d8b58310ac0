"""Tables of backward passes from files, and where norms, surrogates or losses are missing."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jacobian_recipes import BLOCK, CEILING, GRADIENTS, LAYERS, frame, gradient, layer, picked

from normscope.io.csvfile import write_csv
from normscope.studies.jacobian.measures import MEASURES
from normscope.studies.jacobian.tabulate import (
    at_chosen_rate,
    by_layer,
    chosen,
    costs,
    parts,
    slopes,
    surrogates,
)


def build(losses: pd.DataFrame, layers: pd.DataFrame, gradients: pd.DataFrame) -> dict[str, Any]:
    """Every table that is made of these three."""
    models = chosen(losses)
    compared = surrogates(models, layers, gradients)
    by_cell = by_layer(at_chosen_rate(layers, models), 0.95)
    tables = {"by_layer": by_cell, "chosen": models, "surrogates": compared}
    return tables | {
        "costs": costs(compared, 0.95),
        "slopes": slopes(compared),
        "parts": parts(compared, 0.95),
    }


KINDS = ("exact", "center_scale", "center_scale blocks", "center_scale final")
KINDS = (*KINDS, "center_scale all 0.5", "projected")


def full() -> dict[str, pd.DataFrame]:
    """What a grid of 4 arms, surrogates and 2 seeds measures; one model has diverged."""
    rng = np.random.default_rng(0)
    losses, layers, gradients = [], [], []
    for arm in "abcd":
        drawn = {kind: rng.normal(3, 0.1, 2).round(4).tolist() for kind in KINDS}
        if arm == "b":
            drawn["projected"][1] = None
        losses += picked(drawn, arm=arm)
        for seed in (0, 1):
            gradients.append(gradient(seed, round(rng.uniform(0.5, 1), 4), "projected", arm=arm))
            for name in ("blocks.0.mlp.before", "final_norm"):
                shares = {k: round(rng.random(), 4) for k in BLOCK}
                layers.append(layer(seed, name, shares, arm=arm))
    return {
        "losses": frame(losses),
        "layers": frame(layers, LAYERS),
        "gradients": frame(gradients, GRADIENTS),
    }


BUILT = build(**full())


def text(table: pd.DataFrame, place: Path) -> str:
    write_csv(place / "table.csv", table)
    return (place / "table.csv").read_text()


def from_files(tables: dict[str, pd.DataFrame], place: Path) -> dict[str, pd.DataFrame]:
    for name, table in tables.items():
        write_csv(place / f"{name}.csv", table)
    read = {name: pd.read_csv(place / f"{name}.csv") for name in tables}
    # the script knows a cell's numbers from its name, also where the cell has no row
    numbers = dict.fromkeys(("learning_rate", "sigma_penalty"), float)
    return {name: table.astype(numbers) for name, table in read.items()}


def test_tables_are_the_same_from_files(tmp_path):
    again = build(**from_files(full(), tmp_path))
    assert all(len(table) for table in BUILT.values())
    for name, table in BUILT.items():
        assert text(table, tmp_path) == text(again[name], tmp_path), name


HEADERS = {name: ",".join(table.columns) for name, table in BUILT.items()}
NONE = dict.fromkeys(BUILT, 0)


def without_norms() -> dict[str, pd.DataFrame]:
    losses = picked({"exact": [1.0, 2.0]}, arm="none")
    nothing = {name: full()[name][:0] for name in ("layers", "gradients")}
    return full() | nothing | {"losses": frame(losses)}


def only_exact() -> dict[str, pd.DataFrame]:
    losses = full()["losses"]
    return full() | {"losses": losses[losses["norm_backward"] == "exact"]}


def all_diverged() -> dict[str, pd.DataFrame]:
    inputs = full()
    lost = {"capped_loss": CEILING, "failed": 1, "diverged_at": 1.0}
    inputs["losses"] = inputs["losses"].assign(**lost)
    inputs["layers"][list(MEASURES)] = math.nan
    return inputs | {"gradients": inputs["gradients"][:0]}


EMPTY = {
    without_norms: NONE | {"chosen": 2},
    only_exact: NONE | {"by_layer": 4 * 2 * 8, "chosen": 8},
    all_diverged: {
        **{"by_layer": 0, "chosen": 48, "surrogates": 40},
        **{"costs": 20, "slopes": 24, "parts": 16},
    },
}


@pytest.mark.parametrize("in_memory", [True, False], ids=["in memory", "from files"])
@pytest.mark.parametrize("inputs", EMPTY, ids=lambda f: f.__name__)
def test_where_something_is_missing_tables_are_well_formed(tmp_path, inputs, in_memory):
    tables = inputs() if in_memory else from_files(inputs(), tmp_path)
    made = build(**tables)
    assert {name: len(table) for name, table in made.items()} == EMPTY[inputs]
    for name, table in made.items():
        assert text(table, tmp_path).splitlines()[0] == HEADERS[name]


def test_where_all_diverged_costs_are_0_and_all_have_failed():
    made = build(**all_diverged())
    assert made["chosen"]["diverged"].all()
    assert set(made["costs"]["mean"]) == {0.0}
    assert set(made["costs"]["failed"]) == {2}
    assert made["surrogates"][["cosine_blocks", "cosine_parameters"]].isna().sum().sum() > 0
