"""Intervals over trained models, the unit of replication."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, stdev

import scipy  # its parts load at their first use: figures need none


@dataclass(frozen=True)
class Estimate:
    """A mean or median over n models with its interval; the bounds are NaN below n = 2."""

    n: int
    mean: float
    low: float
    high: float


def estimate(values: Sequence[float], level: float) -> Estimate:
    """Mean and two-sided t interval at ``level`` (0.95 for 95%).

    Raises:
        ValueError: no value is given, or one is not finite.
    """
    if not values or not all(map(math.isfinite, values)):
        raise ValueError(f"an interval needs finite values, got {list(values)}")
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Estimate(1, mean, math.nan, math.nan)
    error = stdev(values) / math.sqrt(len(values))
    half = error * float(scipy.special.stdtrit(len(values) - 1, (1 + level) / 2))
    return Estimate(len(values), mean, mean - half, mean + half)


def estimate_median(values: Sequence[float], level: float) -> Estimate:
    """Median and its two-sided interval, which follows from the sign test and is exact.

    Its bounds are values; they are NaN if so few values have no interval at this level.

    Raises:
        ValueError: no value is given, or one is not finite.
    """
    if not values or not all(map(math.isfinite, values)):
        raise ValueError(f"an interval needs finite values, got {list(values)}")
    n, ordered = len(values), sorted(values)
    # the chances that at most 0, 1, ... values lie below the median
    fewer = scipy.special.bdtr(range(n // 2), n, 0.5)
    left_out = sum(2 * chance <= 1 - level for chance in fewer) - 1
    if left_out < 0:
        return Estimate(n, median(values), math.nan, math.nan)
    return Estimate(n, median(values), ordered[left_out], ordered[-1 - left_out])
