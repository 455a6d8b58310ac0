"""Tests of means and medians: ties, units, and exact sums. Their error rates follow from these."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from normscope.statistics.estimate import estimate_median
from normscope.statistics.inference import holm
from normscope.statistics.means import sign_flip, sign_test, student

SAMPLED = 1 / 100_001  # least p where 100,000 flips are drawn
# Fisher 1935, The Design of Experiments, section 21: 15 pairs of Zea mays, eighths of an inch
DARWIN = [49.0, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
finite = st.floats(allow_nan=False, allow_infinity=False)
tenths = st.lists(st.integers(-9, 9), min_size=1, max_size=8)


def sums(values: Sequence[int]) -> list[int]:
    """Sums of all flips."""
    return [
        sum(s * v for s, v in zip(signs, values, strict=True))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]


def enumerated(values: Sequence[int]) -> tuple[float, float]:
    """One-sided p by going through every flip, the observed one among them."""
    every = sums(values)
    greater = sum(v >= sum(values) for v in every) / len(every)
    return greater, sum(v <= sum(values) for v in every) / len(every)


@given(values=tenths, bound=st.integers(-9, 9), unit=st.sampled_from([10, 3, 7e-5, 1e160]))
def test_ties_broken_by_rounding_count_as_ties(values, bound, unit):
    """0.1 + 0.2 - 0.3 is 0, and as large as when it is flipped."""
    greater, less = enumerated([v - bound for v in values])
    flips = sign_flip([v / unit for v in values], bound / unit)
    assert (flips.greater, flips.less) == (greater, less)


@given(values=st.lists(finite, min_size=1, max_size=8), bound=st.just(0.0) | finite)
def test_the_p_of_any_finite_values_is_that_of_exact_sums(values, bound):
    """Every flip that is as large counts; any other that counts is smaller only by rounding."""
    exact = [Fraction(v) - Fraction(bound) for v in values]
    whole = math.lcm(*(v.denominator for v in exact))
    as_integers = [int(v * whole) for v in exact]
    near = int(whole * len(values) * max(map(abs, map(Fraction, [*values, bound]))) / 10**12)
    every, observed, flips = sums(as_integers), sum(as_integers), sign_flip(values, bound)
    for p, sign in ((flips.greater, 1), (flips.less, -1)):
        above = [sign * (v - observed) for v in every]
        at_least, at_most = (sum(v >= least for v in above) / len(above) for least in (0, -near))
        assert at_least <= p <= at_most
    assert flips.smallest == 2.0 ** -len(values)


@pytest.mark.parametrize(("n", "least"), [(17, 2.0**-17), (32, 2.0**-32), (33, SAMPLED)])
def test_flips_of_32_values_are_counted_and_of_more_drawn(n, least):
    flips = sign_flip([1.0] * n)
    assert flips.smallest == least
    assert flips.greater == least
    assert flips.less == 1


def test_no_values_have_no_p():
    outcome = sign_flip([])
    assert outcome.n == 0
    assert np.isnan([outcome.greater, outcome.less, outcome.smallest]).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_or_bound_that_is_not_finite_is_an_error(bad):
    for values, bound in (([bad], 0.0), ([1.0, bad, 2.0], 0.0), ([1.0, 2.0], bad)):
        with pytest.raises(ValueError, match="finite"):
            sign_flip(values, bound)


def test_holms_p_by_hand():
    """5 x 0.001; 4 x 0.02 and 3 x 0.022 no less than it; 2 x 0.4; 0.9."""
    adjusted = holm([0.4, 0.022, 0.001, 0.9, 0.02])
    assert adjusted == pytest.approx([0.8, 0.08, 0.005, 0.9, 0.08], rel=1e-12)
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02], rel=1e-12)
    assert holm([0.6, 0.7]) == [1, 1]


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_students_t_of_darwins_maize_is_fishers(scale):
    """The Design of Experiments, section 17: t = 2.148 of 14 degrees of freedom."""
    values = [v * scale for v in DARWIN]
    assert student(values).greater == pytest.approx(stats.t.sf(2.148, 14), rel=1e-3)
    assert student(values).less == pytest.approx(stats.t.cdf(2.148, 14), rel=1e-3)


def test_without_variation_sign_flips_replace_t():
    assert student([0.1] * 6) == sign_flip([0.1] * 6)
    assert student([3.0]) == sign_flip([3.0])


def test_a_p_of_drawn_flips_is_near_that_of_all_and_the_same_again():
    """33 values of 1 or -1, 22 of them 1: a binomial with 22 or more heads."""
    values = [1.0] * 22 + [-1.0] * 11
    flips, p = sign_flip(values), float(stats.binom.sf(21, 33, 0.5))
    assert flips.greater == pytest.approx(p, abs=5 * math.sqrt(p / 100_000))
    assert flips.less == pytest.approx(stats.binom.cdf(22, 33, 0.5), abs=0.002)
    assert sign_flip(values) == flips


@given(values=tenths, bound=st.integers(-9, 9))
def test_a_sign_test_is_a_binomial_test_of_the_values_on_one_side(values, bound):
    """A value at the bound is on neither side, and counts among the trials."""
    test = sign_test(list(map(float, values)), float(bound))
    for p, side in ((test.greater, 1), (test.less, -1)):
        beyond = sum(side * v > side * bound for v in values)
        expected = stats.binomtest(beyond, len(values), alternative="greater").pvalue
        assert p == pytest.approx(expected, rel=1e-12)
    assert test.smallest == 2.0 ** -len(values)


def test_an_interval_of_a_median_is_that_of_the_sign_test():
    """Conover 1999, section 3.2: of 12 values the third and the tenth, 96.1%; of 5, none at 95%."""
    of_twelve = estimate_median([float(v) for v in range(12)], 0.95)
    assert (of_twelve.n, of_twelve.mean, of_twelve.low, of_twelve.high) == (12, 5.5, 2, 9)
    assert 1 - 2 * stats.binom.cdf(2, 12, 0.5) == pytest.approx(0.961, abs=1e-3)
    assert math.isnan(estimate_median([1.0, 2, 3, 4, 5], 0.95).low)


def test_5_units_never_reach_5_percent():
    values = np.random.default_rng(5).normal(3, 1, (50, 5)).tolist()
    assert min(sign_flip(v).greater for v in values) == 1 / 32
