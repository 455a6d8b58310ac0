"""The smallest difference that a comparison finds, against simulated t-tests."""

import math

import numpy as np
import pytest
import scipy.stats

from normscope.statistics.power import POWER, detectable


@pytest.mark.parametrize("n", [6, 12])
def test_the_difference_is_found_as_often_as_stated(n: int):
    sd = 0.02
    draws = np.random.default_rng(0).normal(detectable(n, sd), sd, (20_000, n))
    found = scipy.stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05
    assert np.mean(found) == pytest.approx(POWER, abs=0.01)


def test_too_few_pairs_find_nothing():
    assert math.isnan(detectable(5, 0.02))
    assert math.isnan(detectable(6, math.nan))
