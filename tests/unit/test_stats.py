"""Intervals over models against scipy's own, and the tables of the scripts that use them."""

import math

import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from normscope import aggregate
from normscope.stats import estimate, margin_verdict, seeds_needed, sign_verdict, undecidable

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


@pytest.mark.parametrize(("alpha", "n"), [(0.05, 6), (0.5, 2), (0.25, 3), (0.01, 8), (0.05 / 3, 7)])
def test_seeds_needed_are_the_first_whose_exact_test_can_reach_alpha(alpha, n):
    """Of n differences of one sign, against the sign test's own p."""
    assert seeds_needed(alpha) == n
    assert stats.binomtest(n, n).pvalue <= alpha < stats.binomtest(n - 1, n - 1).pvalue


POSITIVE = [0.2, 0.3, 0.25, 0.1, 0.4, 0.35]


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        (POSITIVE, "holds"),
        ([-d for d in POSITIVE], "fails"),
        ([-0.2, 0.3, -0.25, 0.1, 0.4, 0.35], "undecided: the interval covers 0"),
        ([0.0] * 6, "undecided: the interval covers 0"),
    ],
)
def test_a_sign_is_decided_by_an_interval(differences, verdict):
    assert sign_verdict(differences, 0) == verdict


@given(differences=st.lists(st.floats(-2, 3), min_size=6, max_size=9))
def test_a_sign_is_decided_where_a_t_test_is_significant(differences):
    assume(max(differences) > min(differences) + 1e-6)
    test = stats.ttest_1samp(differences, 0)
    assume(abs(test.pvalue - 0.05) > 1e-6)
    verdict = sign_verdict(differences, 0)
    assert (verdict in ("holds", "fails")) == (test.pvalue < 0.05)
    assert (verdict == "holds") == (test.pvalue < 0.05 and test.statistic > 0)


COVERED = "undecided: the interval covers an end of the margin"


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [
        # of 6 values 0.1 from their mean: s^2 = 0.012, half an interval 2.5706 s / sqrt(6) = 0.115
        (0.0, "holds"),
        (0.88, "holds"),
        (0.89, COVERED),
        (1.11, COVERED),
        (1.12, "fails"),
        (9.0, "fails"),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_differences_are_within_a_margin_or_beyond_an_end_of_it(mean, verdict, sign):
    differences = [sign * mean + x for x in (0.1, -0.1) * 3]
    assert margin_verdict(differences, 1.0, 0) == verdict


def test_differences_of_both_signs_are_not_taken_for_distances():
    """Each is beyond the margin, their mean is 0."""
    assert margin_verdict([1.2, -1.2] * 3, 1.0, 0) == COVERED
    assert margin_verdict([1.2, -1.2] * 30, 1.0, 0) == "holds"


def test_an_interval_that_is_wider_than_the_margin_decides_nothing():
    assert margin_verdict([3.0, -3.0] * 3, 0.5, 0) == COVERED


def test_a_stricter_level_of_a_margin_has_a_wider_interval():
    differences = [0.85 + x for x in (0.1, -0.1) * 4]
    assert margin_verdict(differences, 1.0, 0) == "holds"
    assert margin_verdict(differences, 1.0, 0, 0.001) == "undecided: 8 seeds, 11 needed"
    # 3.4995 s / sqrt(8) = 0.132 with s^2 = 0.0114
    assert margin_verdict([d + 0.03 for d in differences], 1.0, 0, 0.01) == COVERED
    assert margin_verdict([d + 0.03 for d in differences], 1.0, 0) == "holds"


SELECTION = "undecided: runs diverged, and the others are a selection"


@pytest.mark.parametrize(
    ("n", "diverged", "why"),
    [
        (0, 0, "no data"),
        (0, 2, SELECTION),
        (9, 1, SELECTION),
        (1, 0, "undecided: 1 seed, 6 needed"),
        (5, 0, "undecided: 5 seeds, 6 needed"),
        (6, 0, ""),
    ],
)
def test_what_keeps_pairs_from_a_verdict_keeps_them_from_every_verdict(n, diverged, why):
    assert undecidable(n, diverged) == why
    decided = (sign_verdict([1.0] * n, diverged), margin_verdict([1.0] * n, 2.0, diverged))
    assert decided == (why or "holds",) * 2


def test_a_stricter_level_needs_more_seeds_and_a_wider_interval():
    differences = [0.9, 0.1, 0.6, 1.2, -0.1, 0.4, 0.5, 0.3]
    p = stats.ttest_1samp(differences, 0).pvalue
    assert 0.01 < p < 0.05
    assert sign_verdict(differences, 0, 0.05) == "holds"
    assert sign_verdict(differences, 0, 0.01) == "undecided: the interval covers 0"
    assert sign_verdict(differences[:7], 0, 0.01) == "undecided: 7 seeds, 8 needed"


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
            "diverged_at": 7.0 if math.isnan(value) else math.nan,
        }
        for arm, seeds in loss.items()
        for seed, value in seeds.items()
    )


def compared() -> dict[str, dict]:
    """The row of each arm."""
    compare = aggregate.compare
    return {row["arm"]: row for row in compare(runs(), "layernorm-pre", 0.95).to_dict("records")}


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
