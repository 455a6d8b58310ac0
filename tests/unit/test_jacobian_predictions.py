"""What is expected of a surrogate, and whether it predicts its cost."""

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jacobian_recipes import BLOCK, FINAL, GRADIENTS, LAYERS, cell, frame, gradient, layer, picked
from recall_recipes import by
from scipy import stats

from normscope.studies.jacobian.measures import SURROGATES
from normscope.studies.jacobian.tables import (
    ANY,
    KEPT,
    PREDICTORS,
    VARIED,
    chosen,
    predictions,
    predictors,
)

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
