"""From models to cells, effects and the page: known numbers come back, divergences are counted."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from page_recipes import rows_of
from recall_recipes import by
from scipy import stats

from normscope.nn.arms import ARMS
from normscope.studies.recall.pages import factor_table
from normscope.studies.recall.tables import MEASURES, TABLES
from normscope.studies.recall.tabulate import (
    RESPONSES,
    best_rates,
    by_cell,
    factor_effects,
    factor_levels,
    rises,
    with_factors,
)

CROSSED = [
    name
    for name, arm in ARMS.items()
    if arm.norm.statistic == "token" and arm.norm.radius != "learned" and not arm.norm.logit_scale
]


def run(arm: str, seed: int, rate: float = 0.01, task: str = "recall", **measures: float) -> dict:
    """A row of runs.csv; measures that are not given are 1."""
    row = {"task": task, "arm": arm, "learning_rate": rate, "seed": seed, "diverged_at": None}
    return row | dict.fromkeys(MEASURES, 1.0) | measures


def diverged_run(arm: str, seed: int, rate: float = 0.01) -> dict:
    return run(arm, seed, rate) | dict.fromkeys(MEASURES, math.nan) | {"diverged_at": 3}


def table(rows: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(rows).astype({"diverged_at": "Int64"})


def test_a_cell_has_the_mean_of_its_models_and_counts_those_that_diverged():
    losses = [0.1, 0.4, 0.3]
    rows = [run("layernorm", s, loss=x) for s, x in enumerate(losses)]
    rows += [run("none", 0, loss=7.0, sharpness=math.nan), diverged_run("none", 1)]
    rows += [run("none", 0, rate=0.1), run("none", 0, task="copy"), diverged_run("dyt", 1)]
    cells = by_cell(table(rows), 0.9)
    assert list(cells.columns) == TABLES["cells"].names
    assert len(cells) == 5 * len(MEASURES)
    row_of = by(cells, "task", "arm", "learning_rate", "measure")
    row = row_of["recall", "layernorm", 0.01, "loss"]
    low, high = stats.t.interval(0.9, 2, loc=np.mean(losses), scale=stats.sem(losses))
    assert (row["n"], row["diverged"]) == (3, 0)
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((np.mean(losses), low, high))
    row = row_of["recall", "none", 0.01, "loss"]
    assert (row["n"], row["diverged"], row["mean"]) == (1, 1, 7)
    assert row_of["recall", "none", 0.01, "sharpness"]["n"] == 0
    row = row_of["recall", "dyt", 0.01, "loss"]
    assert (row["n"], row["diverged"]) == (0, 1)
    assert math.isnan(row["mean"])


def test_arms_without_token_statistics_or_with_a_learned_radius_have_no_levels():
    levels = factor_levels(ARMS)
    assert list(levels["arm"]) == CROSSED
    assert len(levels.drop(columns="arm").drop_duplicates()) == len(CROSSED) == 16


def test_planted_effects_of_the_16_arms_come_back_where_they_multiply_and_where_they_add():
    """Centering halves the loss, radius 1 with a gain multiplies it by 9; a bias adds accuracy."""
    rows = []
    for arm in CROSSED:
        norm = ARMS[arm].norm
        factor = (0.5 if norm.center else 1) * (9 if norm.radius == "1" and norm.gain else 1)
        for seed in (1, 2, 3):
            loss, accuracy = factor * 10.0**seed, 0.1 * seed + 0.25 * norm.bias
            rows.append(run(arm, seed, loss=loss, accuracy=accuracy))
    others = [run("none", 1), run("batchnorm", 2), run("scalenorm", 1, loss=1e9)]
    effects = factor_effects(with_factors(table([*rows, *others])), 0.95)
    assert set(effects["n"]) == {3}
    assert set(effects["response"]) == set(RESPONSES.values())
    assert len(effects) == 10 * len(RESPONSES)
    assert effects["alpha"].to_numpy() == pytest.approx(np.full(len(effects), 0.05 / 10))
    planted = {
        ("ln loss", "center: yes − no"): -math.log(2),
        ("ln loss", "radius: 1 − sqrt(d)"): math.log(9) / 2,
        ("ln loss", "gain: yes − no"): math.log(9) / 2,
        ("ln loss", "radius: 1 − sqrt(d) x gain: yes − no"): math.log(9),
        ("accuracy", "bias: yes − no"): 0.25,
    }
    for key, row in by(effects, "response", "contrast").items():
        assert row["effect"] == pytest.approx(planted.get(key, 0.0), abs=1e-9), key


def test_the_best_rate_is_chosen_on_the_other_seeds():
    losses = {
        "layernorm": {0.1: (3.0, 5.0), 0.2: (1.0, 1.5), 0.3: (0.5, 9.0)},
        "none": {0.1: (3.0, 5.0), 0.2: (2.0, 3.0), 0.3: (1.0, 2.0)},
        "dyt": {0.1: (1.0, 2.0), 0.2: (3.0, 4.0)},
        "rmsnorm": {0.1: (1.0, 1.0)},
    }
    rows = [
        run(arm, seed, rate, loss=loss, accuracy=1 / loss)
        for arm, at in losses.items()
        for rate, pair in at.items()
        for seed, loss in enumerate(pair)
    ]
    best = best_rates(table([*rows, run("rmsnorm", 1, rate=0.2, task="copy")]))
    assert best.values.tolist() == [
        # each seed at the rate that is best for the other one
        ["recall", "layernorm", 3, 0.2, 2, 5.0, pytest.approx((1 + 1 / 9) / 2), False],
        ["recall", "none", 3, 0.3, 2, 1.5, 0.75, True],
        ["recall", "dyt", 2, 0.1, 2, 1.5, 0.75, False],  # two rates have no interior
    ]


def test_rises_of_slices():
    """Two directions that rise by 1 and 3 at one end and by 2 and 6 at the other, on average 3."""
    key: dict[str, Any] = {"task": "copy", "arm": "none", "learning_rate": 0.1}
    slices = [
        (1, "filter", 0, {-0.5: 2.0, -0.25: 50.0, 0.0: 1.0, 0.5: 3.0}),
        (1, "filter", 1, {-0.5: 4.0, 0.0: 1.0, 0.25: -7.0, 0.5: 7.0}),
        (1, "published", 0, {-0.5: 1.0, -0.1: 5.0, 0.1: 9.0, 0.5: 3.0}),
        (1, "restored", 0, {-0.5: 100.0, 0.0: 100.0, 0.5: 100.0}),
        (2, "filter", 0, {-0.5: 1.0, 0.0: 1.0, 0.5: 1.0}),
    ]
    rows = [
        key | {"seed": seed, "kind": kind, "direction": direction, "alpha": alpha, "loss": loss}
        for seed, kind, direction, losses in slices
        for alpha, loss in losses.items()
    ]
    assert rises(pd.DataFrame(rows)).to_dict("records") == [
        key | {"seed": 1, "rise": 3},
        key | {"seed": 2, "rise": 0},
    ]


def effect(contrast: str = "gain: yes − no", response: str = "ln loss", **changes: Any) -> dict:
    """An effect of 10 seeds whose joint interval is above 0."""
    bounds = {"effect": 0.5, "low": 0.25, "high": 0.75, "joint_low": 0.1, "joint_high": 0.9}
    return {"response": response, "contrast": contrast, "n": 10} | bounds | changes


SIGNED = "+0.500 [+0.250, +0.750]"
BELOW = {"effect": -0.5, "low": -0.75, "high": -0.25, "joint_low": -0.9, "joint_high": -0.1}


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        (BELOW, "−0.500 [−0.750, −0.250]*"),
        ({"joint_low": 0.0}, SIGNED),
        ({"n": 6}, f"{SIGNED}*"),
        ({"n": 5}, SIGNED),
        (
            {
                "n": 1,
                "low": math.nan,
                "high": math.nan,
                "joint_low": math.nan,
                "joint_high": math.nan,
            },
            "+0.500",
        ),
    ],
)
def test_an_effect_has_a_star_if_its_joint_interval_excludes_0_with_enough_seeds(changes, reads):
    (row,) = rows_of(factor_table(pd.DataFrame([effect(**changes)])))
    assert row["ln loss"] == reads
