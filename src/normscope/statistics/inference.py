"""Statistics over scipy and statsmodels: what a test can reach is said beside what it gives."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts, and those of statsmodels, load at their first use: pages need none

from normscope.statistics.estimate import Estimate

SEED = 0  # of resampling: same inputs, same bytes
MANY = 100_000  # arrangements above which a permutation test samples them


def _varies(values: Sequence[float] | np.ndarray) -> bool:
    """Whether finite values differ by more than rounding."""
    return bool(np.ptp(values) > 1e-12 * np.abs(values).max())


def _sum(x: np.ndarray, axis: int) -> np.ndarray:
    """A sum that the order of the values does not change: BCa counts ties with the sample's own."""
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
    if len(values) < 3 or not _varies(x):
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
    """p-values adjusted for their number (Holm 1979); NaN stays and does not count."""
    from statsmodels.stats.multitest import multipletests  # noqa: PLC0415

    tested = [not math.isnan(v) for v in p]
    adjusted = np.full(len(p), math.nan)
    if any(tested):
        adjusted[tested] = multipletests(np.asarray(p)[tested], method="holm")[1]
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
    """r of x and y with a third list partialled out of both, and its two-sided p.

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
    test = scipy.stats.permutation_test(
        (np.asarray(high), np.asarray(low)),
        lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis),
        alternative="greater",
        n_resamples=MANY,
        rng=np.random.default_rng(SEED),
    )
    return Separation(len(low), len(high), difference, float(test.pvalue), smallest)


def share(successes: int, n: int, level: float) -> Estimate:
    """A share with its exact interval (Clopper & Pearson 1934)."""
    if n == 0:
        return Estimate(0, math.nan, math.nan, math.nan)
    interval = scipy.stats.binomtest(successes, n).proportion_ci(level, method="exact")
    return Estimate(n, successes / n, float(interval.low), float(interval.high))


def mean_test(values: Sequence[float]) -> float:
    """Two-sided p of a mean of 0 (Student's t); NaN below n = 2 or where nothing varies."""
    if len(values) < 2 or np.ptp(values) == 0:
        return math.nan
    return float(scipy.stats.ttest_1samp(values, 0).pvalue)


@dataclass(frozen=True)
class Flips:
    """A sign-flip test: one-sided p that the mean is greater, that it is less, and the least p."""

    n: int
    greater: float
    less: float
    smallest: float


def sign_flip(values: Sequence[float], bound: float = 0.0) -> Flips:
    """Whether the mean of paired differences lies above or below ``bound`` (Fisher 1935).

    Under the null hypothesis every difference from the bound is as likely to have the other sign.
    All ``2^n`` flips are gone through up to 100,000 of them, above which as many are drawn. NaN
    where there is no value.

    Raises:
        ValueError: a value or the bound is not finite.
    """
    n = len(values)
    if not n:
        return Flips(0, math.nan, math.nan, math.nan)
    if not all(map(math.isfinite, [*values, bound])):
        raise ValueError(f"a sign-flip test needs finite values, got {list(values)}, {bound}")
    scale = max(map(abs, [*values, bound])) or 1.0
    x = np.asarray(values, dtype=float) / scale - bound / scale
    if n == 1:  # scipy wants two, and a zero changes no share of flips
        x = np.append(x, 0.0)
    smallest = max(2.0**-n, 1 / (MANY + 1))
    greater, less = (
        float(
            scipy.stats.permutation_test(
                (x,),
                # scipy's tolerance for ties is relative: off 0, it is one of the values' own size
                lambda flipped, axis: 3 + np.mean(flipped, axis=axis),
                permutation_type="samples",
                alternative=side,
                n_resamples=MANY,
                rng=np.random.default_rng(SEED),
                vectorized=True,
            ).pvalue
        )
        for side in ("greater", "less")
    )
    return Flips(n, greater, less, smallest)


def equivalence(values: Sequence[float], margin: float) -> Flips:
    """Whether the mean of paired differences lies within a margin of 0, by two sign-flip tests.

    ``greater`` is the p that the mean is inside: the larger of two one-sided ones (Schuirmann
    1987). ``less`` is the smaller p that it is outside, on one side or the other: for a test at
    level a, compare its double with a.
    """
    below, above = sign_flip(values, -margin), sign_flip(values, margin)
    inside = max(below.greater, above.less)
    return Flips(below.n, inside, min(below.less, above.greater), below.smallest)


def cluster_bootstrap(
    values: Sequence[float], clusters: Sequence[Hashable], level: float, resamples: int
) -> Estimate:
    """The mean of all values with its bootstrap interval (BCa), resampling whole clusters.

    ``n`` counts clusters; bounds are NaN below 3 of them. A cluster counts as often as it has
    values, as in a mean over all.

    Raises:
        ValueError: a value is not finite, or not in a cluster.
    """
    if not all(map(math.isfinite, values)):
        raise ValueError(f"an interval needs finite values, got {list(values)}")
    pairs = list(zip(values, clusters, strict=True))
    names = list(dict.fromkeys(clusters))
    groups = [[v for v, c in pairs if c == name] for name in names]
    mean = math.fsum(values) / len(values) if values else math.nan
    sums, sizes = np.array([math.fsum(v) for v in groups]), np.array([len(v) for v in groups])
    if len(names) < 3:
        return Estimate(len(names), mean, math.nan, math.nan)
    if not _varies(sums / sizes):
        return Estimate(len(names), mean, mean, mean)
    interval = scipy.stats.bootstrap(
        (sums, sizes),
        lambda total, size, axis: _sum(total, axis) / _sum(size, axis),
        paired=True,
        n_resamples=resamples,
        confidence_level=level,
        rng=np.random.default_rng(SEED),
        vectorized=True,
    ).confidence_interval
    return Estimate(len(names), mean, float(interval.low), float(interval.high))


def hedges_g(differences: Sequence[float]) -> float:
    """Mean over standard deviation, corrected for small samples (Hedges 1981); NaN below n = 3.

    Of paired differences ``J(n - 1) mean/sd``, ``J(m) = gamma(m/2)/(sqrt(m/2) gamma((m - 1)/2))``.
    """
    m = len(differences) - 1
    if m < 2 or not _varies(differences):
        return math.nan
    log_j = scipy.special.gammaln(m / 2) - scipy.special.gammaln((m - 1) / 2) - math.log(m / 2) / 2
    return float(np.mean(differences) / np.std(differences, ddof=1) * math.exp(log_j))


@dataclass(frozen=True)
class Difference:
    """A difference of two means with its interval and two-sided p; NaN where there is none."""

    difference: float
    low: float
    high: float
    p: float


def welch(
    one: tuple[float, float, int], other: tuple[float, float, int], alpha: float
) -> Difference:
    """Welch's t test of two means, each with its standard deviation (n - 1) and n."""
    difference = one[0] - other[0]
    if min(one[2], other[2]) < 2 or not one[1] + other[1] > 0:
        return Difference(difference, math.nan, math.nan, math.nan)
    test = scipy.stats.ttest_ind_from_stats(*one, *other, equal_var=False)
    a, b = (sd**2 / n for _, sd, n in (one, other))
    df = (a + b) ** 2 / (a**2 / (one[2] - 1) + b**2 / (other[2] - 1))
    half = float(scipy.stats.t.ppf(1 - alpha / 2, df)) * math.sqrt(a + b)
    return Difference(difference, difference - half, difference + half, float(test.pvalue))
