"""Intervals over models against scipy's own, and the tables of the scripts that use them."""

import math

import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from normscope.statistics.estimate import ALPHA, FEWEST, estimate
from normscope.studies.main import tables as aggregate
from normscope.studies.main.recipe import Cell

losses = st.lists(st.floats(0.1, 20), min_size=2, max_size=8)


@given(values=losses, level=st.floats(0.5, 0.999))
def test_interval_is_scipys(values, level):
    assume(max(values) > min(values))
    e = estimate(values, level)
    low, high = stats.t.interval(
        level, len(values) - 1, loc=sum(values) / len(values), scale=stats.sem(values)
    )
    assert e.n == len(values)
    assert (e.low, e.high) == pytest.approx((low, high), rel=1e-9, abs=1e-9)


def test_interval_of_students_own_data():
    """Student 1908, hours of sleep gained; the interval as R's help of t.test gives it."""
    gained = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    e = estimate(gained, 0.95)
    assert e.mean == pytest.approx(1.58)
    assert (e.low, e.high) == pytest.approx((0.7001142, 2.4598858), abs=1e-7)


def test_one_value_has_no_interval():
    e = estimate([1.5], 0.95)
    assert (e.n, e.mean) == (1, 1.5)
    assert math.isnan(e.low)
    assert math.isnan(e.high)


def test_equal_values_have_an_interval_of_no_width():
    e = estimate([2.0, 2.0, 2.0], 0.95)
    assert (e.low, e.mean, e.high) == (2, 2, 2)


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.nan], [1.0, math.inf]])
def test_no_value_and_no_finite_value_are_errors(values):
    with pytest.raises(ValueError, match="finite"):
        estimate(values, 0.95)


def test_of_fewer_than_six_seeds_no_exact_test_reaches_5_percent():
    assert stats.binomtest(FEWEST, FEWEST).pvalue < ALPHA
    assert stats.binomtest(FEWEST - 1, FEWEST - 1).pvalue > ALPHA


def runs() -> pd.DataFrame:
    """Three arms; one diverged at seed 3, one has a single seed."""
    loss = {
        "layernorm": {1: 1.90, 2: 1.95, 3: 1.88, 4: 1.93},
        "rmsnorm": {1: 1.92, 2: 1.96, 3: math.nan, 4: 1.99},
        "dyt": {1: 2.0, 2: 2.2, 3: 2.1, 4: 2.05},
        "derf": {2: 1.9},
    }
    return pd.DataFrame(
        {
            "arm": arm,
            "placement": "pre",
            "seed": seed,
            "val_loss": value,
            "best_val_loss": value - seed / 10,
            "diverged_at": 7.0 if math.isnan(value) else math.nan,
        }
        for arm, seeds in loss.items()
        for seed, value in seeds.items()
    )


def compared() -> dict[str, dict]:
    """The row of each arm."""
    table = aggregate.compare(runs(), Cell("layernorm", "pre"), 0.95)
    return {row["arm"]: row for row in table.to_dict("records")}


def test_arms_are_compared_with_the_baseline_seed_by_seed():
    rows, values = compared(), runs().pivot_table("val_loss", "seed", "arm")
    for arm in ("rmsnorm", "dyt"):
        pairs = values[[arm, "layernorm"]].dropna()
        # Bonferroni over the two comparisons with more than one pair
        expected = stats.ttest_rel(pairs[arm], pairs["layernorm"]).confidence_interval(1 - 0.05 / 2)
        row = rows[arm]
        assert row["pairs"] == len(pairs)
        assert row["difference_low"] == pytest.approx(expected.low)
        assert row["difference_high"] == pytest.approx(expected.high)


def test_arms_have_the_interval_of_their_own_models():
    row = compared()["rmsnorm"]
    own = stats.ttest_1samp([1.92, 1.96, 1.99], 0).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((own.low, own.high))
    assert (row["n"], row["diverged"]) == (3, 1)
    best = stats.ttest_1samp([1.82, 1.76, 1.59], 0).confidence_interval(0.95)
    assert (row["best_low"], row["best_high"]) == pytest.approx((best.low, best.high))
    assert row["best"] == pytest.approx((1.82 + 1.76 + 1.59) / 3)


def test_one_pair_has_a_difference_and_no_interval():
    row = compared()["derf"]
    assert row["difference"] == pytest.approx(1.9 - 1.95)
    assert math.isnan(row["difference_low"])


def test_the_baseline_is_not_compared_with_itself():
    row = compared()["layernorm"]
    assert row["pairs"] == 4
    assert math.isnan(row["difference"])


def gains() -> pd.DataFrame:
    """Two seeds, two positions, two blocks and a final norm."""
    log_gain = {
        1: [(math.nan, math.nan), (9.0, 0.2), (9.0, 0.4), (-9.0, -1.0)],
        2: [(math.nan, math.nan), (9.0, 0.1), (9.0, 0.6), (-9.0, -1.2)],
    }
    sites = ("embedding", "block_0", "block_1", "final_norm")
    return pd.DataFrame(
        {
            "arm": "layernorm",
            "placement": "pre",
            "seed": seed,
            "site": site,
            "depth": depth,
            "position": position,
            "norm": math.exp(depth * seed),
            "log_gain": log_gain[seed][depth][position],
        }
        for seed in log_gain
        for depth, site in enumerate(sites)
        for position in (0, 1)
    )


def test_gains_are_geometric_and_leave_out_the_first_position():
    table = aggregate.by_arm(gains(), 0.95)
    (row,) = table.to_dict("records")
    assert row["n"] == 2
    # two blocks: the later one is the last
    for part, values in (("first", [0.2, 0.1]), ("later", [0.4, 0.6]), ("last", [0.4, 0.6])):
        expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        logs = [math.log(row[part + end]) for end in ("", "_low", "_high")]
        assert logs == pytest.approx([sum(values) / 2, expected.low, expected.high])


def test_depths_keep_the_first_position_apart():
    table = aggregate.by_depth(gains(), 0.95)
    first, later = (table[table["positions"] == p].sort_values("depth") for p in ("first", "later"))
    assert later["log_gain"].tolist()[1:] == pytest.approx([0.15, 0.5, -1.1])
    assert first["log_gain"].tolist()[1:] == pytest.approx([9, 9, -9])
    assert later["log_norm"].tolist() == pytest.approx([0, 1.5, 3, 4.5])
    own = stats.ttest_1samp([0.2, 0.1], 0).confidence_interval(0.95)
    assert later["log_gain_low"].tolist()[1] == pytest.approx(own.low)
