"""Bootstrap intervals, of values and of clusters: against all resamples and closed forms."""

import itertools
import math
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from normscope.statistics.inference import Estimate, bootstrap_mean, cluster_bootstrap

pytestmark = pytest.mark.filterwarnings("error")
# Fisher 1935, The Design of Experiments, section 21: 15 pairs of Zea mays, eighths of an inch
DARWIN = [49.0, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
# Efron & Tibshirani 1993, table 2.1: survival of mice after surgery, treated
TREATED = [94.0, 197, 16, 38, 99, 141, 23]
finite = st.floats(allow_nan=False, allow_infinity=False)
eighths = st.integers(-72, 72).map(lambda v: v / 8)  # sums are exact: no tie is parted by rounding


def spread(of: Sequence[Sequence[float]]) -> tuple[list[float], list[int]]:
    """Values of clusters in one list, and whose they are."""
    return [v for c in of for v in c], [i for i, c in enumerate(of) for _ in c]


clustered = st.lists(st.lists(eighths, min_size=1, max_size=4), min_size=3, max_size=7)


def assert_same(found: Estimate, other: Estimate) -> None:
    assert found.n == other.n
    bounds = (other.mean, other.low, other.high)
    assert (found.mean, found.low, found.high) == pytest.approx(bounds, rel=1e-9, abs=1e-9)


@given(values=st.lists(eighths, min_size=3, max_size=12), level=st.sampled_from([0.5, 0.9, 0.95]))
def test_clusters_of_one_are_values(values, level):
    found = cluster_bootstrap(values, range(len(values)), level, 199)
    assert_same(found, bootstrap_mean(values, level, 199))


@given(size=st.integers(1, 4), means=st.lists(eighths, min_size=3, max_size=9))
def test_clusters_of_one_size_are_their_means(size, means):
    values, clusters = spread([[m + i - (size - 1) / 2 for i in range(size)] for m in means])
    assert_same(cluster_bootstrap(values, clusters, 0.9, 199), bootstrap_mean(means, 0.9, 199))


@given(of=clustered)
def test_names_of_clusters_and_the_order_within_them_change_nothing(of):
    values, clusters = spread(of)
    found = cluster_bootstrap(values, clusters, 0.9, 99)
    assert found.n == len(of)
    assert found.mean == pytest.approx(np.mean(values))
    names = [("seed", str(99 - c)) for c in clusters]
    assert cluster_bootstrap(values, names, 0.9, 99) == found
    assert cluster_bootstrap(spread([c[::-1] for c in of])[0], clusters, 0.9, 99) == found


def test_a_cluster_counts_as_often_as_it_has_values():
    """A mean of 3 clusters: (1 + 2 + 3 x 6)/5; with the first two left out it is at most 6."""
    e = cluster_bootstrap([1, 2, 6, 6, 6], "abccc", 0.95, 999)
    assert (e.n, e.mean) == (3, 21 / 5)
    assert 1 <= e.low < e.mean < e.high <= 6


@pytest.mark.parametrize(
    ("values", "clusters", "n"),
    [([], [], 0), ([0.3, 0.9], [7, 7], 1), ([0.3, 0.9, 0.6], "aba", 2), ([1.0, 1.0], "ab", 2)],
)
def test_fewer_than_3_clusters_have_no_bounds(values, clusters, n):
    e = cluster_bootstrap(values, clusters, 0.95, 99)
    assert e.n == n
    assert np.isnan([e.low, e.high]).all()
    assert math.isnan(e.mean) if not values else e.mean == pytest.approx(np.mean(values))


@pytest.mark.parametrize(
    "of",
    [
        [[0.5], [0.5], [0.5]],
        [[0.1, 0.9], [0.5], [0.2, 0.5, 0.8]],
        [[0.1] * 3, [0.1] * 6, [0.1]],
        [[0.0], [0.0, 0.0], [0.0], [-1.0, 1.0]],
    ],
)
def test_clusters_of_the_same_mean_have_an_interval_of_no_width(of):
    """Sums of 0.1 over their number differ by rounding."""
    e = cluster_bootstrap(*spread(of), 0.95, 999)
    assert e == Estimate(len(of), e.mean, e.mean, e.mean)
    assert e.mean == pytest.approx(np.mean(spread(of)[0]))


@pytest.mark.parametrize("values", [[1.0, math.nan, 2.0], [math.inf, 1.0, 2.0]])
def test_values_in_clusters_are_finite(values):
    with pytest.raises(ValueError, match="finite"):
        cluster_bootstrap(values, [1, 2, 3], 0.95, 99)


@pytest.mark.parametrize("clusters", [[], [1, 2], [1, 2, 3, 4]])
def test_every_value_is_in_a_cluster(clusters):
    with pytest.raises(ValueError, match=re.escape("zip()")):
        cluster_bootstrap([1.0, 2.0, 3.0], clusters, 0.95, 99)


def counts(n: int, k: int) -> Iterator[tuple[int, ...]]:
    """How often each of k values can be drawn in n draws."""
    for bars in itertools.combinations(range(n + k - 1), k - 1):
        edges = (-1, *bars, n + k - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


def ideal_bca(totals: Sequence[float], sizes: Sequence[int], level: float) -> tuple[float, float]:
    """Efron 1987 without chance: all n^n resamples of n clusters, by how often each is drawn."""
    n = len(totals)
    drawn = np.array(list(counts(n, n)))
    means = (drawn @ totals) / (drawn @ sizes)
    weights = [math.factorial(n) / math.prod(map(math.factorial, c)) / n**n for c in drawn.tolist()]
    assert sum(weights) == pytest.approx(1)
    order = np.argsort(means)
    means, share = means[order], np.cumsum(np.array(weights)[order])
    mean = sum(totals) / sum(sizes)
    below, up_to = (share[np.searchsorted(means, mean + e) - 1] for e in (-1e-9, 1e-9))
    z0 = stats.norm.ppf((below + up_to) / 2)
    without = [(sum(totals) - t) / (sum(sizes) - k) for t, k in zip(totals, sizes, strict=True)]
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
    assert (e.low, e.high) == pytest.approx(ideal_bca(values, [1] * len(values), level), abs=close)


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_an_interval_of_clusters_is_that_of_all_their_resamples(level):
    """Clusters of 1 to 16 values, the large ones lower: a mean of their means is elsewhere."""
    of = [[7.0], [9.0, 5.5], [4.0] * 3, [3.0, 2.5, 2.0, 1.0], [0.5, 1.5] * 8, [6.0, 1.0]]
    e = cluster_bootstrap(*spread(of), level, 20_000)
    bounds = ideal_bca([sum(c) for c in of], [len(c) for c in of], level)
    assert (e.low, e.high) == pytest.approx(bounds, abs=0.05)


@pytest.mark.parametrize("values", [[0.3, 0.3, 0.3, 0.1 + 0.2], [0.1] * 9 + [math.nextafter(1, 0)]])
def test_values_that_rounding_parts_have_bounds(values):
    e = bootstrap_mean(values, 0.95, 999)
    assert e.low <= e.mean <= e.high
