"""From models to cells, costs and what predicts them: against scipy, permutations and by hand."""

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
from recall_recipes import by
from scipy import stats

from normscope.jacobian.measures import GRADIENT, LAYER, MEASURES, SURROGATES
from normscope.jacobian.tables import (
    ANY,
    CELL,
    KEPT,
    LAYER_KEYS,
    PREDICTORS,
    SETTING,
    VARIED,
    by_layer,
    chosen,
    costs,
    of_chosen,
    predictions,
    predictors,
    with_costs,
)
from normscope.tables import write_csv

LOSSES = [*CELL, "seed", "val_loss", "diverged_at"]
NAMES = ["by_layer", "chosen", "costs", "predictors", "predictions"]

UNIGRAM = 3.3


def cell(**changes: Any) -> dict[str, Any]:
    values = {
        "protocol": "small",
        "arm": "layernorm",
        "attention": "softmax",
        "feedback": "fa",
        "norm_backward": "exact",
        "surrogates_in": "all",
        "learning_rate": 0.01,
    }
    return values | changes


def model(seed: int, loss: float | None, **changes: Any) -> dict[str, Any]:
    """A row of losses.csv; no loss means a divergence."""
    lost = None if loss is not None else 3
    return cell(**changes) | {"seed": seed, "val_loss": loss, "diverged_at": lost}


def frame(rows: list[dict[str, Any]], columns: list[str] = LOSSES) -> pd.DataFrame:
    """As scripts read it: text, and numbers that are NaN where there is none."""
    table = pd.DataFrame(rows, columns=columns)
    numbers = {"val_loss": float, "cosine": float} | dict.fromkeys(MEASURES, float)
    return table.astype({k: v for k, v in numbers.items() if k in columns})


def layer(seed: int, name: str, measures: dict[str, float], **changes: Any) -> dict[str, Any]:
    """A row of layers.csv; measures that are not given are NaN."""
    head = {
        "signal": "own",
        "variant": "corrected",
        "layer": name,
        "place": "final" if name == "final_norm" else "block",
        "index": 0,
        "kind": "TokenNorm",
        "d": 8,
        "tokens": 40,
    }
    at = {k: changes.pop(k) for k in list(changes) if k in head}
    return cell(**changes) | {"seed": seed} | head | at | measures


LAYERS = [*CELL, "seed", *LAYER, *MEASURES]
GRADIENTS = [*SETTING, "learning_rate", "seed", *GRADIENT]


def gradient(seed: int, cosine: float, rule: str, place: str = "all", **changes) -> dict[str, Any]:
    """A row of gradients.csv."""
    row = cell(norm_backward=rule, surrogates_in=place) | {"seed": seed, "signal": "own"}
    return row | {"cosine": cosine, "error": 0.1} | changes


def picked(losses: Mapping[str, Sequence[float | None]], **changes: Any) -> list[dict[str, Any]]:
    """Losses of seeds 0, 1, ... by ``norm_backward``, or by that and ``surrogates_in``."""
    return [
        model(
            seed,
            loss,
            norm_backward=rule.split()[0],
            surrogates_in=(rule.split()[1:] or ["all"])[0],
            **changes,
        )
        for rule, of_seeds in losses.items()
        for seed, loss in enumerate(of_seeds)
    ]


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


def of_costs(level: float = 0.9) -> dict[Any, dict[str, Any]]:
    found = costs(chosen(frame(PICKED)), level, UNIGRAM)
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


def test_margins_are_two_standard_deviations_of_the_exact_twins():
    found = of_costs()
    assert found["small", "fa", "projected"]["margin"] == pytest.approx(2 * np.std(EXACT, ddof=1))
    assert found["small", "backprop", "center_scale"]["margin"] == pytest.approx(
        2 * np.std([2, 2.5], ddof=1)
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
    (row,) = costs(chosen(frame(rows)), 0.95, UNIGRAM).to_dict("records")
    assert (row["n"], row["diverged"], row["mean"]) == (1, 2, 0.5)
    assert math.isnan(row["low"])


def test_a_cost_stands_beside_its_loss_and_that_of_character_frequencies():
    rows = picked({"exact": [1.0, 2.0, None], "projected": [1.5, 2.5, 8.0]})
    (row,) = costs(chosen(frame(rows)), 0.95, UNIGRAM).to_dict("records")
    assert (row["loss"], row["unigram"]) == (pytest.approx(2.0), UNIGRAM)  # of whole pairs


def test_models_are_compared_at_the_rates_chosen_for_each():
    rows = [
        *picked({"exact": [1.0, 1.0], "projected": [9.0, 9.0]}, learning_rate=0.1),
        *picked({"exact": [4.0, 4.0], "projected": [3.0, 3.5]}, learning_rate=0.01),
    ]
    (row,) = costs(chosen(frame(rows)), 0.95, UNIGRAM).to_dict("records")
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
    found = of_chosen(rows, models)
    assert list(found.columns) == list(rows.columns)
    rates = dict(zip(found["seed"], found["learning_rate"], strict=True))
    assert rates == dict(zip(models["seed"], models["learning_rate"], strict=True))
    assert rates == {0: 0.01, 1: 0.1, 2: 0.1}
    assert found["r_mean"].tolist() == pytest.approx([seed + rate for seed, rate in rates.items()])


def test_layers_of_models_that_were_not_chosen_are_none():
    rows, models = of_rates("projected")
    assert of_chosen(rows, models).empty
    assert of_chosen(rows[:0], of_rates()[1]).empty


def test_a_layer_has_one_row_a_measure_whatever_the_rates_of_its_models():
    (row,) = by_layer(of_chosen(*of_rates()), 0.95).to_dict("records")
    assert (row["measure"], row["n"]) == ("r_mean", 3)
    assert "learning_rate" not in row


BLOCK = {
    "r_mean": 0.1,
    "r_radial": 0.2,
    "cos_center_scale": 0.9,
    "cos_projected": 1.0,
    "cos_straight_through": 0.8,
    "error_center_scale": 0.3,
    "error_projected": 0.4,
    "error_straight_through": 0.5,
}
FINAL = {name: value / 2 for name, value in BLOCK.items()}
OF_SEEDS = [
    row
    for seed in (0, 1)
    for row in (
        layer(seed, "blocks.0.mlp.before", {k: v - 0.05 * seed for k, v in BLOCK.items()}),
        layer(seed, "blocks.1.mlp.before", {k: v + 0.05 * seed for k, v in BLOCK.items()}),
        layer(seed, "final_norm", FINAL),
        # none of these is of the gradient that the model trains with
        layer(seed, "blocks.0.mlp.before", dict.fromkeys(BLOCK, 50.0), signal="backprop"),
        layer(seed, "blocks.0.mlp.before", dict.fromkeys(BLOCK, 50.0), variant="published"),
        layer(seed, "blocks.0.mlp.before", dict.fromkeys(BLOCK, 50.0), learning_rate=0.5),
    )
]


def expected(rule: str) -> dict[str, Any]:
    """What is expected of a surrogate, ``center_scale final``, of seed 1."""
    losses = frame(picked({"exact": [1.0, 1.0], rule: [1.5, 1.25]}))
    name, place = [*rule.split(), "all"][:2]
    gradients = [gradient(1, 0.7, name, place), gradient(0, 0.6, name, place)]
    gradients += [gradient(1, 0.1, name, place, signal="backprop")]
    gradients += [gradient(1, 0.1, name, place, learning_rate=0.5)]
    gradients += [gradient(1, 0.1, name, "blocks" if place != "blocks" else "all")]
    layers = frame(OF_SEEDS, LAYERS)
    table = predictors(chosen(losses), layers, frame(gradients, GRADIENTS))
    assert list(table.columns) == [*KEPT, *PREDICTORS]
    assert table["seed"].tolist() == [0, 1]
    return by(table, "seed")[1]


@pytest.mark.parametrize(
    ("rule", "left_in"),
    [("center_scale", 0.2), ("projected", 0.0), ("straight_through", 0.3)],
)
def test_energy_left_in_is_what_a_surrogate_does_not_remove(rule, left_in):
    row = expected(rule)
    assert row["left_in_blocks"] == pytest.approx(left_in)
    assert row["left_in_final"] == pytest.approx(left_in / 2)


@pytest.mark.parametrize("rule", SURROGATES)
def test_cosines_and_errors_are_of_the_surrogate_with_blocks_and_final_apart(rule):
    row = expected(rule)
    assert (row["val_loss"], row["val_loss_exact"], row["cost"]) == (1.25, 1.0, 0.25)
    assert row["cosine_blocks"] == pytest.approx(1 - BLOCK[f"cos_{rule}"])
    assert row["cosine_final"] == pytest.approx(1 - FINAL[f"cos_{rule}"])
    assert row["error_blocks"] == pytest.approx(BLOCK[f"error_{rule}"])
    assert row["error_final"] == pytest.approx(FINAL[f"error_{rule}"])
    assert row["cosine_parameters"] == pytest.approx(0.3)


@pytest.mark.parametrize(("place", "without"), [("blocks", "final"), ("final", "blocks")])
def test_nothing_is_expected_where_the_surrogate_is_not_put(place, without):
    row, everywhere = expected(f"center_scale {place}"), expected("center_scale")
    for name in ("left_in", "cosine", "error"):
        assert row[f"{name}_{without}"] == 0
        assert row[f"{name}_{place}"] == everywhere[f"{name}_{place}"] > 0
    assert row["cosine_parameters"] == pytest.approx(0.3)


def test_under_direct_feedback_nothing_is_expected_of_the_final_norm():
    """What it passes back is dropped at the last block's output."""
    losses = frame(picked({"exact": [1.0], "center_scale": [1.5]}, feedback="dfa"))
    rows = [
        layer(0, name, of, feedback="dfa")
        for name, of in (("blocks.0.mlp.before", BLOCK), ("final_norm", FINAL))
    ]
    table = predictors(chosen(losses), frame(rows, LAYERS), frame([], GRADIENTS))
    (row,) = table.to_dict("records")
    assert row["left_in_blocks"] > 0
    assert [row[f"{name}_final"] for name in ("left_in", "cosine", "error")] == [0, 0, 0]


def test_a_placement_without_a_final_norm_expects_nothing_known_of_it():
    losses = frame(picked({"exact": [1.0], "center_scale": [1.5]}))
    layers = frame([layer(0, "blocks.0.mlp.outside", BLOCK)], LAYERS)
    (row,) = predictors(chosen(losses), layers, frame([], GRADIENTS)).to_dict("records")
    assert row["left_in_blocks"] == pytest.approx(0.2)
    assert math.isnan(row["left_in_final"])
    assert math.isnan(row["cosine_parameters"])


def test_expectations_are_of_the_twin_at_the_rate_chosen_for_it():
    rows = [
        *picked({"exact": [1.0], "center_scale": [9.0]}, learning_rate=0.1),
        *picked({"exact": [4.0], "center_scale": [3.0]}, learning_rate=0.01),
    ]
    layers = [
        layer(0, "final_norm", {"r_radial": r}, learning_rate=rate)
        for rate, r in ((0.1, 0.25), (0.01, 0.5))
    ]
    gradients = [
        gradient(0, c, "center_scale", learning_rate=rate) for rate, c in ((0.1, 0.9), (0.01, 0.2))
    ]
    table = predictors(chosen(frame(rows)), frame(layers, LAYERS), frame(gradients, GRADIENTS))
    (row,) = table.to_dict("records")
    assert row["left_in_final"] == 0.25
    assert row["cosine_parameters"] == pytest.approx(0.1)
    assert row["cost"] == pytest.approx(2.0)


def of_three(x: list[float], y: list[float]) -> dict:
    """The correlation over settings a, b, c of one predictor with the cost."""
    rows = [
        {k: v for k, v in cell(arm=arm).items() if k in VARIED}
        | dict.fromkeys(PREDICTORS, math.nan)
        | {"seed": 0, "diverged": False, "left_in_final": a, "cost": b}
        for arm, a, b in zip("abcdefgh", x, y, strict=False)
    ]
    table = pd.DataFrame(rows, columns=[*VARIED, "seed", "diverged", "cost", *PREDICTORS])
    return by(predictions(table), "norm_backward", "predictor")[ANY, "left_in_final"]


@pytest.mark.parametrize("seed", range(4))
def test_a_correlation_is_scipys(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=5).tolist(), rng.normal(size=5).round(1).tolist()
    assert of_three(x, y)["rho"] == pytest.approx(stats.spearmanr(x, y).statistic)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_monotone_relation_is_a_whole_correlation(sign):
    x = [math.exp(i) for i in range(5)]
    assert of_three(x, [sign * i**3 for i in range(5)])["rho"] == pytest.approx(sign)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.0, 2.0], [2.0, 1.0]),
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [4.0, 4.0, 4.0]),
    ],
)
def test_too_few_or_equal_values_have_no_correlation(x, y):
    assert math.isnan(of_three(x, y)["rho"])


def expectations(rules: tuple[str, ...] = ("center_scale", "projected")) -> pd.DataFrame:
    """Rows of ``predictors``: 4 arms by rules, by 2 seeds; costs rise with ``left_in_blocks``."""
    rows = []
    for (i, arm), (j, rule), seed in itertools.product(enumerate("abcd"), enumerate(rules), (0, 1)):
        row = {k: v for k, v in cell(arm=arm, norm_backward=rule).items() if k in VARIED}
        values = dict.fromkeys(PREDICTORS, math.nan) | {"left_in_blocks": i + 10 * j}
        # of its two seeds each cell's mean rises with i; single seeds are in another order
        values |= {"cost": i + (100 - 30 * i) * (1 - 2 * seed) + 5 * j, "error_final": 0.0}
        rows.append(row | {"seed": seed, "diverged": False} | values)
    return pd.DataFrame(rows)


def test_a_correlation_is_of_its_poorest_setting_and_all_that_diverged():
    """Of 8 settings with 2 seeds, one has lost a model, another both."""
    table = expectations()
    of_cell = {
        (arm, rule): (table["arm"] == arm) & (table["norm_backward"] == rule)
        for arm, rule in (("b", "center_scale"), ("c", "projected"))
    }
    lost = of_cell["c", "projected"] | (of_cell["b", "center_scale"] & (table["seed"] == 1))
    table.loc[lost, ["cost", "diverged"]] = [math.nan, True]
    found = by(predictions(table), "norm_backward", "predictor")
    assert {
        rule: (found[rule, p]["n"], found[rule, p]["seeds"], found[rule, p]["diverged"])
        for rule in ("center_scale", "projected", ANY)
        for p in ("left_in_blocks",)
    } == {
        "center_scale": (4, 1, 1),
        "projected": (3, 0, 2),
        ANY: (7, 0, 3),
    }


def test_a_setting_counts_once_with_the_mean_of_its_seeds():
    found = by(predictions(expectations()), "norm_backward", "surrogates_in", "predictor")
    kinds = [("center_scale", "all"), ("projected", "all"), (ANY, ANY)]
    assert list(found) == [(*kind, predictor) for kind in kinds for predictor in PREDICTORS]
    for kind in kinds[:2]:
        row = found[*kind, "left_in_blocks"]
        assert (row["n"], row["rho"]) == (4, pytest.approx(1))
        assert (row["seeds"], row["diverged"]) == (2, 0)
    for kind, n in zip(kinds, (4, 4, 8), strict=True):
        for predictor, known in (("error_final", n), ("cosine_final", 0)):
            row = found[*kind, predictor]  # the same everywhere; not known anywhere
            assert row["n"] == known
            assert math.isnan(row["rho"])


def test_over_all_cells_each_counts_once():
    found = by(predictions(expectations()), "norm_backward", "predictor")
    row = found[ANY, "left_in_blocks"]
    x = [i + 10 * j for i in range(4) for j in (0, 1)]
    y = [i + 5 * j for i in range(4) for j in (0, 1)]
    assert (row["n"], row["rho"]) == (8, pytest.approx(stats.spearmanr(x, y).statistic))


def test_places_of_a_surrogate_are_not_pooled():
    one = expectations(("projected",))
    both = predictions(pd.concat([one, one.assign(surrogates_in="blocks")]))
    sizes = by(both[both["predictor"] == "left_in_blocks"], "surrogates_in")
    assert {place: row["n"] for place, row in sizes.items()} == {"all": 4, "blocks": 4, ANY: 8}


def test_protocols_are_never_pooled():
    one, other = expectations(), expectations().assign(protocol="published")
    found = predictions(pd.concat([one, other]))
    assert found["protocol"].value_counts().to_dict() == {"small": 21, "published": 21}
    of_one = found[found["protocol"] == "small"].reset_index(drop=True)
    pd.testing.assert_frame_equal(of_one, predictions(one))


def build(losses: pd.DataFrame, layers: pd.DataFrame, gradients: pd.DataFrame) -> dict[str, Any]:
    """Every table, as scripts/jacobian.py makes them."""
    models = chosen(losses)
    found = predictors(models, layers, gradients)
    by_cell = by_layer(of_chosen(layers, models), 0.95)
    tables = (by_cell, models, costs(models, 0.95, UNIGRAM), found, predictions(found))
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
