"""Means and their intervals: against scipy and published data, by group, and what is left out."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from normscope.statistics.estimate import estimate
from normscope.statistics.levels import ALPHA, FEWEST
from normscope.statistics.summary import describe, select, summarize

LEVEL = 0.9
NAN = math.nan


@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=6, unique=True))
def test_a_mean_has_students_interval_and_a_geometric_one_that_of_logarithms(values):
    low, high = stats.ttest_1samp(values, 0).confidence_interval(LEVEL)
    plain = describe([*values, NAN, math.inf], LEVEL)
    assert list(plain) == ["n", "mean", "low", "high"]
    assert list(plain.values()) == pytest.approx(
        [len(values), sum(values) / len(values), low, high]
    )
    logs = [math.log(v) for v in values]
    bounds = stats.ttest_1samp(logs, 0).confidence_interval(LEVEL)
    geometric = describe([*values, 0.0, -1.0], LEVEL, geometric=True)
    expected = [math.exp(v) for v in (sum(logs) / len(logs), *bounds)]
    assert list(geometric.values()) == pytest.approx([len(values), *expected])


def test_one_value_has_no_interval_and_none_has_no_mean():
    one = describe([2.0], LEVEL)
    assert (one["n"], one["mean"]) == (1, 2.0)
    assert math.isnan(one["low"])
    assert math.isnan(one["high"])
    assert describe([NAN], LEVEL) == {"n": 0}


def test_groups_are_in_the_order_of_the_table_and_none_is_lost():
    table = pd.DataFrame({"arm": ["b", "b", "a"], "x": [1.0, 4.0, NAN], "y": [1.0, 3.0, 5.0]})
    rows = summarize(table, ["arm"], ["x", "y"], LEVEL, geometric=["x"])
    assert list(rows) == ["arm", "measure", "n", "mean", "low", "high"]
    kept = rows[["arm", "measure", "n"]].values.tolist()
    assert kept == [["b", "x", 2], ["b", "y", 2], ["a", "x", 0], ["a", "y", 1]]
    assert rows["mean"].tolist()[:2] == pytest.approx([2, 2])
    assert rows["mean"].isna().tolist() == [False, False, True, False]


def test_rows_are_selected_by_values():
    table = pd.DataFrame(
        {"arm": ["a", "b", "a"], "depth": [1, 1, 2], "residual": [True, True, False]}
    )
    assert select(table, arm="a", residual=False)["depth"].tolist() == [2]
    assert select(table[:0], arm="a").empty
    assert len(select(table)) == 3


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.nan], [1.0, math.inf]])
def test_no_value_and_no_finite_value_are_errors(values):
    with pytest.raises(ValueError, match="finite"):
        estimate(values, 0.95)


def test_of_fewer_than_six_seeds_no_exact_test_reaches_5_percent():
    assert stats.binomtest(FEWEST, FEWEST).pvalue < ALPHA
    assert stats.binomtest(FEWEST - 1, FEWEST - 1).pvalue > ALPHA
