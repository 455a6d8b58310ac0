"""Intervals and tests on top of scipy and statsmodels, with the smallest p a test can reach."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts, and those of statsmodels, load at their first use: pages need none

from normscope.statistics.estimate import Estimate

SEED = 0  # of resampling, so that results are reproducible
MANY = 100_000  # a permutation test with more arrangements samples this many


def varies(values: Sequence[float] | np.ndarray) -> bool:
    """Whether finite values differ by more than rounding."""
    return bool(np.ptp(values) > 1e-12 * np.abs(values).max())


def _sum(x: np.ndarray, axis: int) -> np.ndarray:
    """A sum that does not depend on the order of the values: BCa counts ties with the sample."""
    return np.sort(x, axis=axis).sum(axis=axis)


def bootstrap_mean(values: Sequence[float], level: float, resamples: int) -> Estimate:
    """Mean with its bootstrap interval (BCa; Efron 1987), resampling the values.

    Bounds are NaN below n = 3, and the mean itself where all values are the same. With values that
    are means over clusters, or differences within them, clusters are what is resampled.

    Raises:
        ValueError: no value is given, or one is not finite.
    """
    if not values or not all(map(math.isfinite, values)):
        raise ValueError(f"an interval needs finite values, got {list(values)}")
    x = np.asarray(values, dtype=float)
    mean = math.fsum(values) / len(values)
    if len(values) < 3 or not varies(x):
        bound = mean if len(values) > 2 else math.nan
        return Estimate(len(values), mean, bound, bound)
    rng = np.random.default_rng(SEED)
    interval = scipy.stats.bootstrap(
        (x,),
        lambda x, axis: _sum(x, axis) / x.shape[axis],
        n_resamples=resamples,
        confidence_level=level,
        rng=rng,
        vectorized=True,
    ).confidence_interval
    return Estimate(len(values), mean, float(interval.low), float(interval.high))


def estimate_published(mean: float, sd: float, n: int, ddof: int, level: float) -> Estimate:
    """The Student t interval of a published mean, from its standard deviation.

    Args:
        ddof: 1 if the standard deviation is over n - 1, 0 if over n.
    """
    if n < 2 or math.isnan(sd):
        return Estimate(n, mean, math.nan, math.nan)
    error = sd * math.sqrt((n - ddof) / (n - 1) / n)
    half = error * float(scipy.stats.t.ppf((1 + level) / 2, n - 1))
    return Estimate(n, mean, mean - half, mean + half)


def holm(p: Sequence[float]) -> list[float]:
    """Holm-adjusted p-values (Holm 1979); NaN stays NaN and does not count."""
    order = np.argsort(p)[: sum(not math.isnan(v) for v in p)]  # NaN comes last
    adjusted = np.full(len(p), math.nan)
    steps = np.arange(len(order), 0, -1) * np.asarray(p, dtype=float)[order]
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted.tolist()


@dataclass(frozen=True)
class Correlation:
    """Pearson's r with its interval (Fisher's z) and two-sided p; NaN where there is none."""

    n: int
    r: float
    low: float
    high: float
    p: float


def correlation(x: Sequence[float], y: Sequence[float], level: float) -> Correlation:
    """Pearson's r of two lists of the same length; NaN below n = 3 or where one does not vary."""
    n = len(x)
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(n, math.nan, math.nan, math.nan, math.nan)
    fit = scipy.stats.pearsonr(x, y)
    low, high = fit.confidence_interval(level) if n > 3 else (math.nan, math.nan)
    return Correlation(n, float(fit.statistic), float(low), float(high), float(fit.pvalue))


def partial_correlation(
    x: Sequence[float], y: Sequence[float], given: Sequence[float]
) -> tuple[float, float]:
    """Partial correlation of x and y given a third list, and its two-sided p.

    The t of x in the regression of y on x and the third is that of the partial correlation:
    ``r = t / sqrt(t^2 + n - 3)``. NaN below n = 4, or where a list follows from the others.
    """
    from statsmodels.regression.linear_model import OLS  # noqa: PLC0415
    from statsmodels.tools import add_constant  # noqa: PLC0415

    columns = np.column_stack([x, given])
    every = np.column_stack([columns, y])
    if len(x) < 4 or np.linalg.matrix_rank(add_constant(every, has_constant="add")) < 4:
        return math.nan, math.nan
    fit = OLS(np.asarray(y), add_constant(columns, has_constant="add")).fit()
    t = float(fit.tvalues[1])
    return t / math.sqrt(t**2 + fit.df_resid), float(fit.pvalues[1])


@dataclass(frozen=True)
class Separation:
    """A one-sided permutation test of the difference of two means.

    ``smallest`` is the smallest p that this many units can give: one over the number of
    arrangements.
    """

    n_low: int
    n_high: int
    difference: float
    p: float
    smallest: float


def separation(low: Sequence[float], high: Sequence[float]) -> Separation:
    """Whether ``high`` has the larger mean; NaN where a group is empty.

    The test enumerates up to 100,000 arrangements; of more, it samples 100,000.
    """
    if not low or not high:
        return Separation(len(low), len(high), math.nan, math.nan, math.nan)
    difference = float(np.mean(high) - np.mean(low))
    smallest = 1 / min(math.comb(len(low) + len(high), len(low)), MANY + 1)
    if min(len(low), len(high)) == 1:  # scipy needs two in each group
        alone, rest = (high[0], low) if len(high) == 1 else (-low[0], [-v for v in high])
        p = (1 + sum(v >= alone for v in rest)) / (1 + len(rest))
        return Separation(len(low), len(high), difference, p, smallest)
    test = scipy.stats.permutation_test(
        (np.asarray(high), np.asarray(low)),
        lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis),
        alternative="greater",
        n_resamples=MANY,
        rng=np.random.default_rng(SEED),
    )
    return Separation(len(low), len(high), difference, float(test.pvalue), smallest)


def proportion(successes: int, n: int, level: float) -> Estimate:
    """A proportion with its exact interval (Clopper & Pearson 1934)."""
    if n == 0:
        return Estimate(0, math.nan, math.nan, math.nan)
    interval = scipy.stats.binomtest(successes, n).proportion_ci(level, method="exact")
    return Estimate(n, successes / n, float(interval.low), float(interval.high))


def mean_test(values: Sequence[float]) -> float:
    """Two-sided p of a mean of 0 (Student's t); NaN below n = 2 or where nothing varies."""
    if len(values) < 2 or np.ptp(values) == 0:
        return math.nan
    return float(scipy.stats.ttest_1samp(values, 0).pvalue)
