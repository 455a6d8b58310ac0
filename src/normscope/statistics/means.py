"""Tests of a mean or median over units: t, sign flips, sign test."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load at their first use: pages need none

from normscope.statistics.inference import MANY, SEED, varies


@dataclass(frozen=True)
class OneSided:
    """One-sided p-values that a mean or median is greater or less.

    ``smallest`` is the smallest p that this many units can give; 0 if there is no such limit.
    """

    n: int
    greater: float
    less: float
    smallest: float


Test = Callable[[Sequence[float], float], OneSided]
MOST_FOR_ALL_FLIPS = 32  # values; all sums of half of them are kept, at most 2^16


def _distances(values: Sequence[float], bound: float) -> np.ndarray:
    """Distances from the bound, scaled so that the largest number is 1."""
    if not all(map(math.isfinite, [*values, bound])):
        raise ValueError(f"a test of a mean needs finite values, got {list(values)}, {bound}")
    scale = max(map(abs, [*values, bound])) or 1.0
    return np.asarray(values, dtype=float) / scale - bound / scale


def student(values: Sequence[float], bound: float = 0.0) -> OneSided:
    """Whether the mean lies above or below ``bound``: Student's t over units.

    If the values differ by rounding alone, t is undefined and sign flips replace it.

    Raises:
        ValueError: a value or the bound is not finite.
    """
    x = _distances(values, bound)
    if len(x) < 2 or not varies(x):
        return sign_flip(values, bound)
    t = x.mean() / (x.std(ddof=1) / math.sqrt(len(x)))
    greater, less = (float(scipy.special.stdtr(len(x) - 1, s)) for s in (-t, t))
    return OneSided(len(x), greater, less, 0.0)


def sign_flip(values: Sequence[float], bound: float = 0.0) -> OneSided:
    """Whether the mean of paired differences lies above or below ``bound`` (Fisher 1935).

    Under the null hypothesis every difference from the bound is as likely to have the other sign;
    of differences of 0 and 1 this is McNemar's exact test. All ``2^n`` flips are counted, from the
    sums of each half of the values (Pagano & Tritchler 1983); of more than 32 values, 100,000
    flips are drawn. NaN without values.

    Raises:
        ValueError: a value or the bound is not finite.
    """
    n = len(values)
    if not n:
        return OneSided(0, math.nan, math.nan, math.nan)
    x = _distances(values, bound)
    slack = n * 1e-13  # sums that differ by rounding alone are ties
    if n > MOST_FOR_ALL_FLIPS:
        signs = np.random.default_rng(SEED).choice([-1.0, 1.0], (MANY, n))
        first, second, flips = np.append(signs @ x, x.sum()), np.zeros(1), MANY + 1
    else:
        first, second, flips = _flip_sums(x[: n // 2]), np.sort(_flip_sums(x[n // 2 :])), 2**n
    below = np.searchsorted(second, x.sum() - slack - first)
    up_to = np.searchsorted(second, x.sum() + slack - first, side="right")
    greater = (first.size * second.size - int(below.sum())) / flips
    return OneSided(n, greater, int(up_to.sum()) / flips, 1 / flips)


def _flip_sums(x: np.ndarray) -> np.ndarray:
    """The sums of the values with every combination of signs."""
    sums = np.zeros(1)
    for value in x:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def sign_test(values: Sequence[float], bound: float = 0.0) -> OneSided:
    """Whether the median lies above or below ``bound``: whether more than half of the units do.

    The test is exact for values of any distribution (Arbuthnott 1710). A value at the bound counts
    for neither side. NaN without values.

    Raises:
        ValueError: a value or the bound is not finite.
    """
    n = len(values)
    if not n:
        return OneSided(0, math.nan, math.nan, math.nan)
    x = _distances(values, bound)
    greater, less = (float(scipy.special.bdtrc((s * x > 0).sum() - 1, n, 0.5)) for s in (1, -1))
    return OneSided(n, greater, less, 2.0**-n)
