"""The test of a comparison against scipy and statsmodels, and when it decides."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from normscope.statistics.levels import DECISIVE_P
from normscope.verdicts.comparison import Comparison
from normscope.verdicts.sample import Sample
from normscope.verdicts.test import Result, result

RNG = np.random.default_rng(5)
VALUES = tuple(RNG.normal(0.3, 0.2, 12))


def outcome_of(
    values, expect: str, measure: str = "s.t.loss", *, log: bool = False, count: bool = False
) -> Result:
    comparison = Comparison(measure=measure, expect=expect)
    return result(comparison, Sample(tuple(values), (), log), is_count=count, level=0.95)


def test_a_mean_is_tested_by_students_t():
    for expect, bound in (("above 0.1", 0.1), ("below 0.1", 0.1), ("above 0.5", 0.5)):
        found = outcome_of(VALUES, expect)
        reference = stats.ttest_1samp(VALUES, bound)
        assert found.p == pytest.approx(reference.pvalue)
        interval = stats.ttest_1samp(VALUES, 0).confidence_interval()
        assert (found.low, found.high) == pytest.approx(interval)
        is_above = np.mean(VALUES) > bound
        outcome = "as claimed" if is_above == expect.startswith("above") else "opposite"
        assert found.outcome == (outcome if reference.pvalue < DECISIVE_P else "undecided")


def test_between_two_ends_both_one_sided_tests_must_agree():
    p, *_ = DescrStatsW(np.array(VALUES)).ttost_mean(0.0, 0.6)
    assert outcome_of(VALUES, "between 0 and 0.6").p == pytest.approx(2 * p)
    wide = outcome_of(VALUES, "within 2")
    assert wide.outcome == "as claimed"
    outside = outcome_of(VALUES, "within 0.01")
    assert outside.outcome == "opposite"
    assert outside.p == pytest.approx(
        stats.ttest_1samp(VALUES, 0.01, alternative="greater").pvalue * 2
    )


def test_factors_are_tested_by_their_logarithms():
    ratios = np.exp(RNG.normal(0.0, 0.1, 12))
    found = outcome_of(ratios, "within 2", log=True)
    p, *_ = DescrStatsW(np.log(ratios)).ttost_mean(-math.log(2), math.log(2))
    assert found.p == pytest.approx(2 * p)
    assert found.effect == pytest.approx(stats.gmean(ratios))
    assert 0 < outcome_of([0.0, *ratios], "below 1", log=True).effect < 1e-20
    assert math.isfinite(outcome_of([math.inf, *ratios], "above 1", log=True).effect)


def test_a_median_is_tested_by_the_sign_test():
    found = outcome_of(VALUES, "above 0.1", "median s.t.loss")
    above = sum(v > 0.1 for v in VALUES)
    expected = stats.binomtest(above, len(VALUES), alternative="greater").pvalue * 2
    assert found.p == pytest.approx(min(1, expected))
    assert found.effect == np.median(VALUES)


def test_counts_are_tested_by_all_flips_of_signs():
    values = [1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    sums = [np.dot(signs, values) for signs in itertools.product((-1, 1), repeat=7)]
    expected = 2 * np.mean([s >= sum(values) - 1e-9 for s in sums])
    found = outcome_of(values, "above 0", count=True)
    assert found.p == pytest.approx(expected)
    assert math.isnan(found.low)


@pytest.mark.parametrize(
    ("values", "expect", "outcome", "worst"),
    [
        ([0.1, 0.3], "always below 0.5", "as claimed", 0.3),
        ([0.1, 0.7], "always below 0.5", "opposite", 0.7),
        ([0.1, 0.7], "always above 0.5", "opposite", 0.1),
        ([-0.6, 0.1], "always within 0.5", "opposite", -0.6),
        ([0.5], "always below 0.5", "opposite", 0.5),
    ],
)
def test_one_row_decides_what_is_always_expected(values, expect, outcome, worst):
    found = outcome_of(values, expect)
    assert (found.outcome, found.effect, found.is_fact) == (outcome, worst, True)


def test_few_seeds_decide_nothing_and_say_what_is_needed():
    few = outcome_of([1.0, 1.1, 0.9, 1.0, 1.05], "above 0")
    assert (few.outcome, few.reason, few.n) == ("undecided", "n = 5, 6 needed", 5)
    assert few.effect == pytest.approx(1.01)
    unreachable = outcome_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "above 0", "median s.t.loss")
    assert unreachable.outcome == "undecided"
    assert "gives no p below" in unreachable.reason
    assert outcome_of(VALUES, "above 0.25").reason.startswith("p = ")


def test_a_result_is_read_as_it_was_written():
    found = outcome_of(VALUES, "above 0.1")
    assert Result.model_validate_json(found.model_dump_json(exclude_defaults=True)) == found
    empty = Result.model_validate_json(Result(reason="no data").model_dump_json())
    assert math.isnan(empty.p)
