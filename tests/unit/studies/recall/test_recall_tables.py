"""From models to cells and effects: known numbers come back, what diverged is counted."""

import math

import numpy as np
import pandas as pd
import pytest
from normscope.studies.recall.measures import HEIGHTS, MEASURES
from recall_recipes import by
from scipy import stats

from normscope.nn.arms import ARMS
from normscope.studies.recall.tabulate import (
    KEYS,
    RESPONSES,
    best_rates,
    by_cell,
    crossed,
    factor_effects,
    factor_levels,
    slice_heights,
    swept,
)

COLUMNS = (*MEASURES, *HEIGHTS)
TOKEN_ARMS = [
    name
    for name, arm in ARMS.items()
    if arm.norm.statistic == "token" and arm.norm.radius != "learned" and not arm.norm.logit_scale
]


def run(arm: str, seed: int, rate: float = 0.01, task: str = "recall", **measures: float) -> dict:
    """A row of recall.csv; measures that are not given are 1."""
    row = {"task": task, "arm": arm, "learning_rate": rate, "seed": seed, "diverged_at": None}
    return row | dict.fromkeys(COLUMNS, 1.0) | measures


def diverged(arm: str, seed: int, rate: float = 0.01, task: str = "recall") -> dict:
    return run(arm, seed, rate, task) | dict.fromkeys(COLUMNS, math.nan) | {"diverged_at": 3}


def table(rows: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(rows).astype({"diverged_at": "Int64"})


def test_a_cell_has_the_mean_and_interval_of_its_models():
    losses = [0.1, 0.4, 0.3]
    rows = [run("layernorm", s, loss=x) for s, x in enumerate(losses)]
    cells = by_cell(table([*rows, run("none", 0, loss=7.0)]), 0.9)
    assert list(cells.columns) == [*KEYS, *"measure n diverged mean low high".split()]
    assert len(cells) == 2 * len(COLUMNS)
    rows_by_cell = by(cells, "arm", "measure")
    row = rows_by_cell["layernorm", "loss"]
    low, high = stats.t.interval(0.9, 2, loc=np.mean(losses), scale=stats.sem(losses))
    assert (row["n"], row["diverged"]) == (3, 0)
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((np.mean(losses), low, high))
    row = rows_by_cell["none", "loss"]
    assert (row["n"], row["mean"]) == (1, 7)
    assert math.isnan(row["low"])


def test_a_diverged_model_is_counted_and_in_no_mean():
    rows = [run("none", 1, loss=2.0), diverged("none", 2), diverged("dyt", 1)]
    cells = by(by_cell(table(rows), 0.95), "arm", "measure")
    row = cells["none", "loss"]
    assert (row["n"], row["diverged"], row["mean"]) == (1, 1, 2)
    row = cells["dyt", "loss"]
    assert (row["n"], row["diverged"]) == (0, 1)
    assert math.isnan(row["mean"])


def test_a_measure_that_is_not_finite_leaves_its_model_out_of_that_mean_alone():
    rows = [run("none", 1, sharpness=math.nan, loss=2.0), run("none", 2, sharpness=5.0, loss=4.0)]
    cells = by(by_cell(table(rows), 0.95), "measure")
    assert (cells["sharpness"]["n"], cells["sharpness"]["mean"]) == (1, 5)
    assert (cells["loss"]["n"], cells["loss"]["mean"]) == (2, 3)
    assert cells["sharpness"]["diverged"] == 0


def test_cells_of_other_tasks_and_rates_are_apart():
    rows = [run("none", 1), run("none", 1, rate=0.1), run("none", 1, task="copy")]
    cells = by_cell(table(rows), 0.95)
    assert len(cells[KEYS].drop_duplicates()) == 3
    assert set(cells["n"]) == {1}


@pytest.mark.parametrize(
    ("arm", "levels"),
    [
        ("layernorm", ["yes", "sqrt(d)", "yes", "yes"]),
        ("layernorm_bias", ["yes", "sqrt(d)", "no", "yes"]),
        ("rmsnorm", ["no", "sqrt(d)", "yes", "no"]),
        ("manual_l2", ["no", "1", "no", "no"]),
        ("centered_l2_affine", ["yes", "1", "yes", "yes"]),
    ],
)
def test_levels_are_the_factors_of_the_arm(arm, levels):
    assert factor_levels([arm]).values.tolist() == [[arm, *levels]]


def test_arms_without_token_statistics_or_of_a_learned_radius_have_no_levels():
    levels = factor_levels(list(ARMS))
    assert list(levels["arm"]) == TOKEN_ARMS
    others = {
        "batchnorm",
        "dyt",
        "none",
        "scalenorm",
        "centered_scalenorm_gain",
        "manual_l2_scaled",
    }
    assert not set(levels["arm"]) & others
    assert len(levels.drop(columns="arm").drop_duplicates()) == 16


def test_factors_that_do_not_vary_are_not_crossed():
    arms = ("layernorm", "layernorm_gain", "centered_l2_affine", "none")
    kept, factors = crossed(table([run(arm, 1) for arm in arms]))
    assert factors == {"radius": ["sqrt(d)", "1"], "bias": ["no", "yes"]}
    assert set(kept["arm"]) == set(arms) - {"none"}


def test_planted_effects_of_the_16_arms_come_back_where_they_multiply_and_where_they_add():
    """Centering halves the loss, radius 1 with a gain multiplies it by 9; a bias adds accuracy."""
    rows = []
    for arm in TOKEN_ARMS:
        norm = ARMS[arm].norm
        factor = (0.5 if norm.center else 1) * (9 if norm.radius == "1" and norm.gain else 1)
        for seed in (1, 2, 3):
            loss, accuracy = factor * 10.0**seed, 0.1 * seed + 0.25 * norm.bias
            rows.append(run(arm, seed, loss=loss, accuracy=accuracy))
    others = [run("none", 1), run("batchnorm", 2), run("scalenorm", 1, loss=1e9)]
    effects = factor_effects(table([*rows, *others]), 0.95)
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


@pytest.mark.filterwarnings("error")
def test_a_seed_is_left_out_of_the_responses_that_it_lacks():
    """Diverged: of all. No logarithm, as of a curvature below 0: of that one."""
    arms = ("layernorm", "layernorm_gain", "layernorm_bias", "layernorm_plain")
    rows = [run(arm, seed) for arm in arms for seed in (1, 2, 3)]
    rows[0] |= diverged("layernorm", 1)
    rows[4]["edge"] = -2.0
    effects = factor_effects(table(rows), 0.95)
    name = RESPONSES["edge"]
    assert set(effects.loc[effects["response"] == name, "n"]) == {1}
    assert set(effects.loc[effects["response"] != name, "n"]) == {2}


def test_an_incomplete_crossing_has_no_effects_and_all_columns():
    effects = factor_effects(table([run(a, 1) for a in ("layernorm", "manual_l2", "none")]), 0.95)
    assert len(effects) == 0
    columns = "response contrast kind n effect low high joint_low joint_high alpha"
    assert list(effects.columns) == columns.split()


def test_an_arm_is_swept_where_a_task_has_it_at_two_rates():
    rows = [
        run("layernorm", 1, rate=0.1),
        run("layernorm", 1, rate=0.2),
        run("none", 1, rate=0.1),
        run("none", 2, rate=0.1),
        run("none", 1, rate=0.2, task="copy"),
    ]
    assert swept(table(rows)).index.tolist() == [0, 1]


def test_the_best_rate_has_the_least_mean_loss_and_says_whether_it_is_at_the_edge():
    losses = {
        "layernorm": {0.1: (3.0, 5.0), 0.2: (1.0, 1.5), 0.3: (0.5, 9.0)},
        "none": {0.1: (3.0, 5.0), 0.2: (1.0, 2.0)},
    }
    rows = [
        run(arm, seed, rate, loss=loss, accuracy=1 / loss)
        for arm, at in losses.items()
        for rate, pair in at.items()
        for seed, loss in enumerate(pair)
    ]
    best = best_rates(table([*rows, run("dyt", 1)]))
    assert best.values.tolist() == [
        ["recall", "layernorm", 3, 0.2, 2, 5.0, pytest.approx((1 + 1 / 9) / 2), False],
        ["recall", "none", 2, 0.2, 2, 1.5, 0.75, True],
    ]


def test_a_rate_at_which_a_run_diverged_is_not_the_best():
    rows = [run("none", s, 0.1, loss=2.0) for s in (1, 2)]
    rows += [run("none", 1, 0.2, loss=1.0), diverged("none", 2, 0.2)]
    rows += [diverged("dyt", 1, rate) for rate in (0.1, 0.2)]
    best = by(best_rates(table(rows)), "arm")
    assert (best["none"]["rates"], best["none"]["best"]) == (2, 0.1)
    assert best["dyt"]["rates"] == 2
    assert math.isnan(best["dyt"]["best"])


def slice_rows(kind: str, direction: int, losses: dict[float, float], seed: int = 1) -> list[dict]:
    key = {"task": "copy", "arm": "none", "learning_rate": 0.1, "seed": seed, "kind": kind}
    return [
        key | {"direction": direction, "alpha": a, "offset": a, "loss": loss}
        for a, loss in losses.items()
    ]


def test_heights_of_slices():
    """Two directions that rise by 1 and 3 at one end and by 2 and 6 at the other, on average 3;
    a published slice of four points: (5 + 9) / 2 in the middle, (1 + 3) / 2 at its ends."""
    rows = [
        *slice_rows("filter", 0, {-0.5: 2.0, -0.25: 50.0, 0.0: 1.0, 0.5: 3.0}),
        *slice_rows("filter", 1, {-0.5: 4.0, 0.0: 1.0, 0.25: -7.0, 0.5: 7.0}),
        *slice_rows("published", 0, {-0.5: 1.0, -0.1: 5.0, 0.1: 9.0, 0.5: 3.0}),
        *slice_rows("restored", 0, {-0.5: 100.0, 0.0: 100.0, 0.5: 100.0}),
        *slice_rows("filter", 0, {-0.5: 1.0, 0.0: 1.0, 0.5: 1.0}, seed=2),
        *slice_rows("published", 0, {-0.5: 1.0, -0.1: 1.0, 0.1: 1.0, 0.5: 1.0}, seed=2),
    ]
    key = {"task": "copy", "arm": "none", "learning_rate": 0.1}
    assert slice_heights(pd.DataFrame(rows)).to_dict("records") == [
        key | {"seed": 1, "rise": 3, "hump": 5},
        key | {"seed": 2, "rise": 0, "hump": 0},
    ]
