"""Intervals over trained models, the unit of replication."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats


@dataclass(frozen=True)
class Estimate:
    """A mean over n models with its Student t interval; the bounds are NaN below n = 2."""

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
    half = float(stats.sem(values) * stats.t.ppf((1 + level) / 2, len(values) - 1))
    return Estimate(len(values), mean, mean - half, mean + half)
