"""Statistics of pretrained models against scipy, statsmodels, enumeration and by hand."""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from normscope.statistics.inference import (
    Estimate,
    bootstrap_mean,
    correlation,
    estimate_published,
    mean_test,
    partial_correlation,
    proportion,
    separation,
)

numbers = st.floats(-9, 9).map(lambda v: round(v, 3))
# Efron & Tibshirani 1993, table 2.1: survival of mice after surgery, treated and control
TREATED = [94.0, 197, 16, 38, 99, 141, 23]
CONTROL = [52.0, 104, 146, 10, 51, 30, 40, 27, 46]
SKEWED = list(np.exp(np.random.default_rng(1).normal(size=25)))


@given(values=st.lists(numbers, min_size=2, max_size=9), level=st.floats(0.5, 0.999))
@pytest.mark.parametrize("ddof", [0, 1])
def test_the_interval_of_a_summary_is_scipys_of_the_data_behind_it(values, level, ddof):
    assume(max(values) > min(values))
    mean, sd = float(np.mean(values)), float(np.std(values, ddof=ddof))
    e = estimate_published(mean, sd, len(values), ddof, level)
    expected = stats.ttest_1samp(values, 0).confidence_interval(level)
    assert (e.low, e.high) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-9)
    assert e.n == len(values)


@pytest.mark.parametrize(("sd", "n"), [(0.1, 1), (0.1, 0), (math.nan, 25)])
def test_a_summary_without_a_spread_has_no_interval(sd, n):
    e = estimate_published(1.2, sd, n, 0, 0.95)
    assert (e.n, e.mean) == (n, 1.2)
    assert math.isnan(e.low)
    assert math.isnan(e.high)


def test_an_interval_of_r_is_fishers():
    """tanh(atanh r +- 1.959964 / sqrt(n - 3)); p of t = r sqrt((n - 2) / (1 - r^2))."""
    x, y = TREATED, CONTROL[:7]
    estimate = correlation(x, y, 0.95)
    r = float(np.corrcoef(x, y)[0, 1])
    half = 1.959964 / math.sqrt(7 - 3)
    assert estimate.n == 7
    assert estimate.r == pytest.approx(r)
    bounds = (math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half))
    assert (estimate.low, estimate.high) == pytest.approx(bounds, abs=1e-7)
    t = r * math.sqrt(5 / (1 - r**2))
    assert estimate.p == pytest.approx(2 * stats.t.sf(abs(t), 5))


def test_r_is_missing_where_there_is_none():
    for x, y in (([], []), ([1, 2], [2, 1]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [5, 5, 5])):
        estimate = correlation(x, y, 0.95)
        assert estimate.n == len(x)
        assert np.isnan([estimate.r, estimate.low, estimate.high, estimate.p]).all()
    of_three = correlation([1, 2, 3], [1, 2, 4], 0.95)
    assert of_three.r == pytest.approx(9 / math.sqrt(84))  # 3 / sqrt(2 x 14 / 3)
    assert math.isnan(of_three.low)
    assert math.isnan(of_three.high)


@given(rows=st.lists(st.tuples(numbers, numbers, numbers), min_size=4, max_size=9))
def test_a_partial_correlation_is_the_textbooks(rows):
    x, y, z = np.array(rows).T
    assume(min(np.ptp(x), np.ptp(y), np.ptp(z)) > 0)
    xy, xz, yz = (np.corrcoef(*pair)[0, 1] for pair in ((x, y), (x, z), (y, z)))
    assume(max(abs(xz), abs(yz)) < 0.999)
    r = (xy - xz * yz) / math.sqrt((1 - xz**2) * (1 - yz**2))
    assume(abs(r) < 0.999)
    partial, p = partial_correlation(list(x), list(y), list(z))
    assert partial == pytest.approx(r, abs=1e-9)
    df = len(rows) - 3
    t = r * math.sqrt(df / (1 - r**2))
    assert p == pytest.approx(2 * stats.t.sf(abs(t), df), abs=1e-9)


VARIED = [0.2, 0.1, 0.5, 0.3, 0.9]


PRIMES, GIVEN = [1, 2, 3, 5, 7], [2, 1, 5, 3, 3]


@pytest.mark.parametrize(
    ("x", "y", "given"),
    [
        (PRIMES[:3], VARIED[:3], GIVEN[:3]),
        (PRIMES, VARIED, [3, 5, 7, 11, 15]),
        ([4] * 5, VARIED, GIVEN),
        (PRIMES, VARIED, [6] * 5),
        # the residuals of y are rounding: it is constant, 2 z, or 0.3 z + 0.1
        (PRIMES, [0.1] * 5, GIVEN),
        (PRIMES, [4.0, 2, 10, 6, 6], GIVEN),
        (PRIMES, [0.7, 0.4, 1.6, 1.0, 1.0], GIVEN),
    ],
)
def test_a_partial_correlation_is_missing_where_a_list_follows_from_others(x, y, given):
    assert np.isnan(partial_correlation(x, y, given)).all()


@pytest.mark.parametrize(("low", "high"), [([], []), ([1.0], []), ([], [1.0, 2.0])])
def test_an_empty_group_is_not_compared(low, high):
    comparison = separation(low, high)
    assert (comparison.n_low, comparison.n_high) == (len(low), len(high))
    assert np.isnan([comparison.difference, comparison.p, comparison.smallest]).all()


groups = st.lists(st.integers(-5, 5), min_size=1, max_size=4)


@given(low=groups, high=groups)
def test_the_p_of_a_separation_is_the_share_of_arrangements(low, high):
    every = list(itertools.combinations(low + high, len(high)))
    as_far = sum(sum(chosen) >= sum(high) for chosen in every)
    comparison = separation([float(v) for v in low], [float(v) for v in high])
    assert comparison.p == pytest.approx(as_far / len(every))
    assert comparison.smallest == pytest.approx(1 / len(every))
    assert comparison.p >= comparison.smallest * (1 - 1e-12)


def test_a_proportion_of_none_or_all_has_an_interval_on_one_side():
    """p^5 = 0.025"""
    none, every = proportion(0, 5, 0.95), proportion(5, 5, 0.95)
    assert (none.low, none.high) == pytest.approx((0, 1 - 0.025**0.2))
    assert (every.low, every.high) == pytest.approx((0.025**0.2, 1))
    missing = proportion(0, 0, 0.95)
    assert missing.n == 0
    assert np.isnan([missing.mean, missing.low, missing.high]).all()


@given(values=st.lists(numbers, min_size=2, max_size=9))
def test_the_p_of_a_mean_is_students(values):
    assume(max(values) > min(values))
    t = np.mean(values) / (np.std(values, ddof=1) / math.sqrt(len(values)))
    assert mean_test(values) == pytest.approx(2 * stats.t.sf(abs(t), len(values) - 1), abs=1e-9)


def test_the_p_of_a_mean_is_missing_where_there_is_none():
    assert np.isnan([mean_test([]), mean_test([0.3]), mean_test([0.3] * 5)]).all()


def test_a_bootstrap_interval_is_the_same_again():
    first, again = (bootstrap_mean(SKEWED, 0.95, 199) for _ in range(2))
    assert first == again
    assert bootstrap_mean(SKEWED, 0.95, 200) != first


@pytest.mark.parametrize("values", [[0.3], [0.3, 0.4], [0.3, 0.3]])
def test_fewer_than_three_values_have_no_bootstrap_interval(values):
    e = bootstrap_mean(values, 0.95, 99)
    assert (e.n, e.mean) == (len(values), pytest.approx(np.mean(values)))
    assert math.isnan(e.low)
    assert math.isnan(e.high)


def test_values_that_are_all_the_same_have_an_interval_of_no_width():
    assert bootstrap_mean([0.5] * 4, 0.95, 99) == Estimate(4, 0.5, 0.5, 0.5)


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, 2.0, math.nan], [1.0, math.inf, 2.0]])
def test_no_value_and_no_finite_value_are_errors(values):
    with pytest.raises(ValueError, match="finite"):
        bootstrap_mean(values, 0.95, 99)


# Fisher 1935, The Design of Experiments, section 21: 15 pairs of Zea mays, eighths of an inch
DARWIN = [49.0, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def counts(n: int, k: int) -> Iterator[tuple[int, ...]]:
    """How often each of k values can be drawn in n draws."""
    for bars in itertools.combinations(range(n + k - 1), k - 1):
        edges = (-1, *bars, n + k - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


def ideal_bca(values: Sequence[float], level: float) -> tuple[float, float]:
    """Efron 1987 without chance: all n^n resamples of n values, by how often each is drawn."""
    n = len(values)
    drawn = np.array(list(counts(n, n)))
    means = drawn @ values / n
    weights = [math.factorial(n) / math.prod(map(math.factorial, c)) / n**n for c in drawn.tolist()]
    assert sum(weights) == pytest.approx(1)
    order = np.argsort(means)
    means, share = means[order], np.cumsum(np.array(weights)[order])
    mean = sum(values) / n
    below, up_to = (share[np.searchsorted(means, mean + e) - 1] for e in (-1e-9, 1e-9))
    z0 = stats.norm.ppf((below + up_to) / 2)
    without = [(sum(values) - v) / (n - 1) for v in values]
    u = np.mean(without) - np.array(without)
    a = (u**3).sum() / (6 * (u**2).sum() ** 1.5)
    ends = z0 + stats.norm.ppf([(1 - level) / 2, (1 + level) / 2])
    low, high = np.searchsorted(share, stats.norm.cdf(z0 + ends / (1 - a * ends)))
    return float(means[low]), float(means[high])


@pytest.mark.parametrize("level", [0.8, 0.9])
@pytest.mark.parametrize("values", [TREATED, [0.1, 0.5, 0.7, 1.1, 2.3, 7.9], DARWIN[:7]])
def test_a_bootstrap_interval_is_that_of_all_resamples(values, level):
    """Bounds of 20,000 resamples vary by 0.02 standard errors; the ideal ones are discrete."""
    e = bootstrap_mean(values, level, 20_000)
    close = 0.1 * float(stats.sem(values))
    assert (e.low, e.high) == pytest.approx(ideal_bca(values, level), abs=close)


@pytest.mark.parametrize("values", [[0.3, 0.3, 0.3, 0.1 + 0.2], [0.1] * 9 + [math.nextafter(1, 0)]])
def test_values_that_differ_by_rounding_have_bounds(values):
    e = bootstrap_mean(values, 0.95, 999)
    assert e.low <= e.mean <= e.high
