"""Intervals over models against scipy's, and of published data."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from normscope.statistics.estimate import ALPHA, FEWEST, estimate

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
