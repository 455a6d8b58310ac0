"""From models to cells and costs: against scipy and by hand; and what is missing."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jacobian_recipes import (
    BLOCK,
    GRADIENTS,
    LAYERS,
    NAMES,
    UNIGRAM,
    frame,
    gradient,
    layer,
    model,
    picked,
)
from recall_recipes import by
from scipy import stats

from normscope.io.csvfile import write_csv
from normscope.studies.jacobian.measures import MEASURES
from normscope.studies.jacobian.tables import (
    LAYER_KEYS,
    PREDICTORS,
    at_chosen_rate,
    by_layer,
    chosen,
    costs,
    predictions,
    predictors,
    with_costs,
)


def at_rates(losses: Mapping[float, Sequence[float | None]]) -> pd.DataFrame:
    """``chosen`` of a cell by its losses of seeds 0, 1, ... at each rate."""
    rows = [
        model(seed, loss, learning_rate=rate)
        for rate, of_seeds in losses.items()
        for seed, loss in enumerate(of_seeds)
    ]
    return chosen(frame(rows))


def test_the_rate_of_a_seed_is_chosen_by_the_others():
    """Seed 0 alone is better at 0.1, where the others are worse."""
    found = at_rates({0.1: [1.0, 3.0, 3.0], 0.01: [2.0, 2.2, 2.1]})
    rows = by(found, "seed")
    assert (rows[0]["learning_rate"], rows[0]["val_loss"]) == (0.01, 2.0)
    # without seed 1: 1.0 + 3.0 < 2.0 + 2.1, whatever seed 1 itself has
    assert (rows[1]["learning_rate"], rows[1]["val_loss"]) == (0.1, 3.0)
    assert not found["diverged"].any()


@given(losses=st.lists(st.lists(st.floats(0.1, 9), min_size=3, max_size=3), min_size=1, max_size=4))
def test_a_chosen_rate_has_the_least_mean_loss_over_the_other_seeds(losses):
    rates = [10.0**-k for k in range(len(losses))]
    found = by(at_rates(dict(zip(rates, losses, strict=True))), "seed")
    at = np.array(losses)
    for seed in range(3):
        means = np.delete(at, seed, axis=1).mean(axis=1)
        index = rates.index(found[seed]["learning_rate"])
        assert means[index] == pytest.approx(means.min())
        assert found[seed]["val_loss"] == at[index, seed]


def test_one_seed_chooses_for_itself():
    (row,) = at_rates({0.1: [2.0], 0.01: [1.5], 0.001: [1.7]}).to_dict("records")
    assert (row["learning_rate"], row["val_loss"]) == (0.01, 1.5)


def test_a_rate_at_which_another_seed_diverged_is_not_chosen():
    found = by(at_rates({0.1: [1.0, None, 1.0], 0.01: [2.0, 2.0, 2.0]}), "seed")
    assert (found[0]["learning_rate"], found[2]["learning_rate"]) == (0.01, 0.01)
    # the others know nothing of seed 1's own divergence
    assert (found[1]["learning_rate"], found[1]["diverged"]) == (0.1, True)
    assert math.isnan(found[1]["val_loss"])


def test_a_cell_that_diverged_at_every_rate_says_so():
    found = at_rates({0.1: [None, None], 0.01: [None, None]})
    assert found["diverged"].tolist() == [True, True]
    assert found["val_loss"].isna().all()


def test_every_cell_but_for_its_rate_chooses_for_itself():
    rows = [
        *picked({"exact": [1.0, 1.0], "projected": [3.0, 3.0]}, learning_rate=0.1),
        *picked({"exact": [2.0, 2.0], "projected": [2.0, 2.0]}, learning_rate=0.01),
    ]
    found = by(chosen(frame(rows)), "norm_backward", "seed")
    assert {key: row["learning_rate"] for key, row in found.items()} == {
        ("exact", 0): 0.1,
        ("exact", 1): 0.1,
        ("projected", 0): 0.01,
        ("projected", 1): 0.01,
    }


EXACT = [1.0, 1.3, 1.1, 1.5]
PICKED = [
    *picked(
        {
            "exact": EXACT,
            "center_scale": [1.1, 1.5, 1.15, 1.75],
            "projected": [1.0, 1.4, None, 1.4],
            "straight_through final": [None] * 4,
        }
    ),
    *picked(
        {"exact": [2.0, 2.5], "center_scale": [2.25, 2.5], "projected": [2.1, None]},
        feedback="backprop",
    ),
    *picked({"exact": [3.0, 3.1], "projected": [3.4, 3.3]}, protocol="published"),
]


def of_costs(level: float = 0.9, margin_sds: float = 2.0) -> dict[Any, dict[str, Any]]:
    found = costs(chosen(frame(PICKED)), level, UNIGRAM, margin_sds)
    return by(found, "protocol", "feedback", "norm_backward")


def test_a_cost_is_the_mean_difference_from_the_exact_twin_of_the_same_seed():
    found = of_costs()
    row = found["small", "fa", "center_scale"]
    pairs = stats.ttest_rel([1.1, 1.5, 1.15, 1.75], EXACT)
    own, joint = (pairs.confidence_interval(level) for level in (0.9, 1 - 0.1 / 3))
    assert (row["n"], row["diverged"]) == (4, 0)
    assert row["mean"] == pytest.approx(np.mean([0.1, 0.2, 0.05, 0.25]))
    assert (row["low"], row["high"]) == pytest.approx((own.low, own.high))
    assert (row["joint_low"], row["joint_high"]) == pytest.approx((joint.low, joint.high))


def test_joint_levels_are_of_the_comparisons_of_a_protocol_that_have_an_interval():
    found = of_costs()
    alphas = {key[0]: row["alpha"] for key, row in found.items()}
    assert {key: row["alpha"] for key, row in found.items()} == {
        key: alphas[key[0]] for key in found
    }
    assert alphas == pytest.approx({"small": 0.1 / 3, "published": 0.1})


@pytest.mark.parametrize("sds", [2.0, 0.5])
def test_margins_are_so_many_standard_deviations_of_the_exact_twins(sds):
    found = of_costs(margin_sds=sds)
    assert found["small", "fa", "projected"]["margin"] == pytest.approx(sds * np.std(EXACT, ddof=1))
    assert found["small", "backprop", "center_scale"]["margin"] == pytest.approx(
        sds * np.std([2, 2.5], ddof=1)
    )


def test_pairs_of_a_diverged_model_are_counted_and_in_no_mean():
    found = of_costs()
    row = found["small", "fa", "projected"]
    assert (row["n"], row["diverged"]) == (3, 1)
    assert row["mean"] == pytest.approx(np.mean([0.0, 0.1, -0.1]))
    row = found["small", "fa", "straight_through"]
    assert (row["n"], row["diverged"], row["surrogates_in"]) == (0, 4, "final")
    assert math.isnan(row["mean"])
    assert math.isnan(row["joint_low"])


def test_a_pair_whose_exact_twin_diverged_is_lost_too():
    rows = picked({"exact": [1.0, None, None], "projected": [1.5, 2.0, None]})
    found = with_costs(chosen(frame(rows)))
    assert found["diverged"].tolist() == [False, True, True]
    assert found["cost"].tolist() == pytest.approx([0.5, math.nan, math.nan], nan_ok=True)
    (row,) = costs(chosen(frame(rows)), 0.95, UNIGRAM, 2.0).to_dict("records")
    assert (row["n"], row["diverged"], row["mean"]) == (1, 2, 0.5)
    assert math.isnan(row["low"])


def test_a_cost_stands_beside_its_loss_and_that_of_character_frequencies():
    rows = picked({"exact": [1.0, 2.0, None], "projected": [1.5, 2.5, 8.0]})
    (row,) = costs(chosen(frame(rows)), 0.95, UNIGRAM, 2.0).to_dict("records")
    assert (row["loss"], row["unigram"]) == (pytest.approx(2.0), UNIGRAM)  # of whole pairs


def test_models_are_compared_at_the_rates_chosen_for_each():
    rows = [
        *picked({"exact": [1.0, 1.0], "projected": [9.0, 9.0]}, learning_rate=0.1),
        *picked({"exact": [4.0, 4.0], "projected": [3.0, 3.5]}, learning_rate=0.01),
    ]
    (row,) = costs(chosen(frame(rows)), 0.95, UNIGRAM, 2.0).to_dict("records")
    assert row["mean"] == pytest.approx(2.25)


def test_layers_have_the_interval_of_their_cells_models():
    values = [0.2, 0.5, 0.3]
    rows = [layer(s, "final_norm", {"r_mean": x}) for s, x in enumerate(values)]
    rows += [layer(s, "final_norm", {"r_mean": 9.0}, variant="published") for s in (0, 1)]
    rows += [layer(0, "blocks.0.mlp.before", {"r_mean": 7.0, "r_radial": math.inf})]
    rows += [layer(3, "final_norm", {})]
    found = by_layer(frame(rows, LAYERS), 0.8)
    assert list(found.columns) == [*LAYER_KEYS, "measure", "n", "mean", "low", "high"]
    assert set(found["measure"]) == {"r_mean"}
    rows_by_layer = by(found, "layer", "variant")
    row = rows_by_layer["final_norm", "corrected"]
    low, high = stats.t.interval(0.8, 2, loc=np.mean(values), scale=stats.sem(values))
    assert row["n"] == 3
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((np.mean(values), low, high))
    row = rows_by_layer["blocks.0.mlp.before", "corrected"]
    assert (row["n"], row["mean"]) == (1, 7)
    assert math.isnan(row["low"])
    assert rows_by_layer["final_norm", "published"]["n"] == 2


RATES = (0.1, 0.01)


def of_rates(norm_backward: str = "exact") -> tuple[pd.DataFrame, pd.DataFrame]:
    """A layer and ``chosen`` of two rates: 0.01 is chosen for seed 0, 0.1 for seeds 1 and 2."""
    losses = {0.1: [1.0, 3.0, 3.0], 0.01: [2.0, 2.2, 2.1]}
    rows = [
        layer(s, "final_norm", {"r_mean": s + r}, learning_rate=r) for s in range(3) for r in RATES
    ]
    models = [
        model(seed, loss, learning_rate=rate, norm_backward=norm_backward)
        for rate, of_seeds in losses.items()
        for seed, loss in enumerate(of_seeds)
    ]
    return frame(rows, LAYERS), chosen(frame(models))


def test_layers_are_those_of_exact_models_at_the_rates_chosen_for_them():
    rows, models = of_rates()
    found = at_chosen_rate(rows, models)
    assert list(found.columns) == list(rows.columns)
    rates = dict(zip(found["seed"], found["learning_rate"], strict=True))
    assert rates == dict(zip(models["seed"], models["learning_rate"], strict=True))
    assert rates == {0: 0.01, 1: 0.1, 2: 0.1}
    assert found["r_mean"].tolist() == pytest.approx([seed + rate for seed, rate in rates.items()])


def test_layers_of_models_that_were_not_chosen_are_none():
    rows, models = of_rates("projected")
    assert at_chosen_rate(rows, models).empty
    assert at_chosen_rate(rows[:0], of_rates()[1]).empty


def test_a_layer_has_one_row_a_measure_whatever_the_rates_of_its_models():
    (row,) = by_layer(at_chosen_rate(*of_rates()), 0.95).to_dict("records")
    assert (row["measure"], row["n"]) == ("r_mean", 3)
    assert "learning_rate" not in row


def build(losses: pd.DataFrame, layers: pd.DataFrame, gradients: pd.DataFrame) -> dict[str, Any]:
    """Every table, as scripts/jacobian.py makes them."""
    models = chosen(losses)
    found = predictors(models, layers, gradients)
    by_cell = by_layer(at_chosen_rate(layers, models), 0.95)
    tables = (by_cell, models, costs(models, 0.95, UNIGRAM, 2.0), found, predictions(found))
    return dict(zip(NAMES, tables, strict=True))


def full() -> dict[str, pd.DataFrame]:
    """What a grid of 4 arms, 2 surrogates and 2 seeds measures; one model has diverged."""
    rng = np.random.default_rng(0)
    losses, layers, gradients = [], [], []
    for arm, seed in itertools.product("abcd", (0, 1)):
        drawn = rng.normal(3, 0.1, 3).round(4).tolist()
        if (arm, seed) == ("b", 1):
            drawn[2] = None
        for rule, loss in zip(("exact", "center_scale", "projected"), drawn, strict=True):
            losses.append(model(seed, loss, arm=arm, norm_backward=rule))
            if rule != "exact":
                cosine = round(rng.uniform(0.5, 1), 4)
                gradients.append(gradient(seed, cosine, rule, arm=arm))
        for name in ("blocks.0.mlp.before", "final_norm"):
            layers.append(layer(seed, name, {k: round(rng.random(), 4) for k in BLOCK}, arm=arm))
    return {
        "losses": frame(losses),
        "layers": frame(layers, LAYERS),
        "gradients": frame(gradients, GRADIENTS),
    }


BUILT = build(**full())


def text(table: pd.DataFrame, place: Path) -> str:
    write_csv(place / "table.csv", table)
    return (place / "table.csv").read_text()


def test_tables_are_the_same_from_files(tmp_path):
    inputs = full()
    for name, table in inputs.items():
        write_csv(tmp_path / f"{name}.csv", table)
    again = build(**{name: pd.read_csv(tmp_path / f"{name}.csv") for name in inputs})
    assert all(len(table) for table in BUILT.values())
    for name in NAMES:
        assert text(BUILT[name], tmp_path) == text(again[name], tmp_path), name


HEADERS = {name: ",".join(table.columns) for name, table in BUILT.items()}


def without_norms() -> dict[str, pd.DataFrame]:
    losses = picked({"exact": [1.0, 2.0]}, arm="none")
    return (
        full()
        | {name: full()[name][:0] for name in ("layers", "gradients")}
        | {"losses": frame(losses)}
    )


def only_exact() -> dict[str, pd.DataFrame]:
    losses = full()["losses"]
    return full() | {"losses": losses[losses["norm_backward"] == "exact"]}


def all_diverged() -> dict[str, pd.DataFrame]:
    found = full()
    found["losses"] = found["losses"].assign(val_loss=math.nan, diverged_at=1)
    found["layers"][list(MEASURES)] = math.nan
    found["gradients"] = found["gradients"][:0]
    return found


EMPTY = {
    without_norms: {"by_layer": 0, "chosen": 2, "costs": 0, "predictors": 0, "predictions": 0},
    only_exact: {"by_layer": 4 * 2 * 8, "chosen": 8, "costs": 0, "predictors": 0, "predictions": 0},
    all_diverged: {
        "by_layer": 0,
        "chosen": 24,
        "costs": 8,
        "predictors": 16,
        "predictions": 3 * len(PREDICTORS),
    },
}


@pytest.mark.parametrize("from_files", [False, True], ids=["in memory", "from files"])
@pytest.mark.parametrize("inputs", EMPTY, ids=lambda f: f.__name__)
def test_where_something_is_missing_tables_are_well_formed(tmp_path, inputs, from_files):
    tables = inputs()
    if from_files:
        for name, table in tables.items():
            write_csv(tmp_path / f"{name}.csv", table)
        tables = {name: pd.read_csv(tmp_path / f"{name}.csv") for name in tables}
        # the script knows a cell's rate from its name, also where the cell has no row
        tables = {name: table.astype({"learning_rate": float}) for name, table in tables.items()}
    found = build(**tables)
    assert {name: len(table) for name, table in found.items()} == EMPTY[inputs]
    for name, table in found.items():
        assert text(table, tmp_path).splitlines()[0] == HEADERS[name]


def test_where_all_diverged_no_number_is_made_up():
    found = build(**all_diverged())
    assert found["chosen"]["diverged"].all()
    assert found["costs"]["n"].tolist() == [0] * 8
    assert found["costs"]["diverged"].tolist() == [2] * 8
    assert found["costs"][["mean", "low", "joint_high", "margin"]].isna().all(axis=None)
    assert found["predictors"]["cost"].isna().all()
    assert found["predictions"]["n"].tolist() == [0] * 3 * len(PREDICTORS)
    assert found["predictions"]["rho"].isna().all()
