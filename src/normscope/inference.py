"""Statistics over scipy and statsmodels: what a test can reach is said beside what it gives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.multitest import multipletests
from statsmodels.tools import add_constant

from normscope.stats import Estimate

SEED = 0  # of resampling: same inputs, same bytes
MANY = 100_000  # arrangements above which a permutation test samples them


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
    if len(values) < 3 or np.ptp(x) == 0:
        bound = mean if len(values) > 2 else math.nan
        return Estimate(len(values), mean, bound, bound)
    rng = np.random.default_rng(SEED)
    found = stats.bootstrap(
        (x,), np.mean, n_resamples=resamples, confidence_level=level, rng=rng, vectorized=True
    ).confidence_interval
    return Estimate(len(values), mean, float(found.low), float(found.high))


def of_summary(mean: float, sd: float, n: int, ddof: int, level: float) -> Estimate:
    """The Student t interval of a published mean, from its standard deviation.

    Args:
        ddof: 1 if the standard deviation is over n - 1, 0 if over n.
    """
    if n < 2 or math.isnan(sd):
        return Estimate(n, mean, math.nan, math.nan)
    error = sd * math.sqrt((n - ddof) / (n - 1) / n)
    half = error * float(stats.t.ppf((1 + level) / 2, n - 1))
    return Estimate(n, mean, mean - half, mean + half)


def holm(p: Sequence[float]) -> list[float]:
    """p-values adjusted for their number (Holm 1979); NaN stays and does not count."""
    there = [not math.isnan(v) for v in p]
    adjusted = np.full(len(p), math.nan)
    if any(there):
        adjusted[there] = multipletests(np.asarray(p)[there], method="holm")[1]
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
    found = stats.pearsonr(x, y)
    low, high = found.confidence_interval(level) if n > 3 else (math.nan, math.nan)
    return Correlation(n, float(found.statistic), float(low), float(high), float(found.pvalue))


def partial_correlation(
    x: Sequence[float], y: Sequence[float], given: Sequence[float]
) -> tuple[float, float]:
    """r of x and y with a third list partialled out of both, and its two-sided p.

    The t of x in the regression of y on x and the third is that of the partial correlation:
    ``r = t / sqrt(t^2 + n - 3)``. NaN below n = 4, or where a list follows from the others.
    """
    columns = np.column_stack([x, given])
    every = np.column_stack([columns, y])
    if len(x) < 4 or np.linalg.matrix_rank(add_constant(every, has_constant="add")) < 4:
        return math.nan, math.nan
    fit = OLS(np.asarray(y), add_constant(columns, has_constant="add")).fit()
    t = float(fit.tvalues[1])
    return t / math.sqrt(t**2 + fit.df_resid), float(fit.pvalues[1])


@dataclass(frozen=True)
class Separation:
    """Whether one group lies above another: an exact permutation test of the difference of means.

    ``p`` is one-sided, ``smallest`` the least p that this many units can give: one over the number
    of arrangements that are gone through.
    """

    n_low: int
    n_high: int
    difference: float
    p: float
    smallest: float


def separation(low: Sequence[float], high: Sequence[float]) -> Separation:
    """Whether ``high`` has the larger mean; NaN where a group is empty.

    All arrangements are gone through up to 100,000 of them, above which as many are drawn.
    """
    if not low or not high:
        return Separation(len(low), len(high), math.nan, math.nan, math.nan)
    difference = float(np.mean(high) - np.mean(low))
    smallest = 1 / min(math.comb(len(low) + len(high), len(low)), MANY + 1)
    if min(len(low), len(high)) == 1:  # scipy wants two in each; the one can take every place
        alone, rest = (high[0], low) if len(high) == 1 else (-low[0], [-v for v in high])
        p = (1 + sum(v >= alone for v in rest)) / (1 + len(rest))
        return Separation(len(low), len(high), difference, p, smallest)
    found = stats.permutation_test(
        (np.asarray(high), np.asarray(low)),
        lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis),
        alternative="greater",
        n_resamples=MANY,
        rng=np.random.default_rng(SEED),
    )
    return Separation(len(low), len(high), difference, float(found.pvalue), smallest)


def share(successes: int, n: int, level: float) -> Estimate:
    """A share with its exact interval (Clopper & Pearson 1934)."""
    if n == 0:
        return Estimate(0, math.nan, math.nan, math.nan)
    found = stats.binomtest(successes, n).proportion_ci(level, method="exact")
    return Estimate(n, successes / n, float(found.low), float(found.high))


def mean_test(values: Sequence[float]) -> float:
    """Two-sided p of a mean of 0 (Student's t); NaN below n = 2 or where nothing varies."""
    if len(values) < 2 or np.ptp(values) == 0:
        return math.nan
    return float(stats.ttest_1samp(values, 0).pvalue)
