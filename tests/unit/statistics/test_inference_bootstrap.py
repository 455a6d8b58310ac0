"""Bootstrap intervals against all resamples and closed forms."""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from scipy import stats

from normscope.statistics.inference import bootstrap_mean

pytestmark = pytest.mark.filterwarnings("error")
# Fisher 1935, The Design of Experiments, section 21: 15 pairs of Zea mays, eighths of an inch
DARWIN = [49.0, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
# Efron & Tibshirani 1993, table 2.1: survival of mice after surgery, treated
TREATED = [94.0, 197, 16, 38, 99, 141, 23]


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
    """Bounds of 20,000 resamples vary by 0.02 standard errors, and of the ideal ones by steps."""
    e = bootstrap_mean(values, level, 20_000)
    close = 0.1 * float(stats.sem(values))
    assert (e.low, e.high) == pytest.approx(ideal_bca(values, level), abs=close)


@pytest.mark.parametrize("values", [[0.3, 0.3, 0.3, 0.1 + 0.2], [0.1] * 9 + [math.nextafter(1, 0)]])
def test_values_that_rounding_parts_have_bounds(values):
    e = bootstrap_mean(values, 0.95, 999)
    assert e.low <= e.mean <= e.high
