"""Intervals over trained models, the unit of replication."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import scipy  # its parts load at their first use: figures need none

ALPHA = 0.05  # level that seeds enough for a verdict can reach


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
    half = float(scipy.stats.sem(values) * scipy.stats.t.ppf((1 + level) / 2, len(values) - 1))
    return Estimate(len(values), mean, mean - half, mean + half)


def seeds_needed(alpha: float) -> int:
    """Pairs from which an exact test can reach ``alpha``.

    Of the sign flips of n paired differences the least two-sided p is ``2^(1 - n)``.
    """
    return math.ceil(1 - math.log2(alpha))


def sign_verdict(differences: Sequence[float], diverged: int, alpha: float = ALPHA) -> str:
    """Whether differences, one a seed, are positive: holds, fails, or undecided with the reason.

    Args:
        differences: of trained models that are paired by seed.
        diverged: pairs that are missing as a run diverged: what is left is a selection.
        alpha: level of the two-sided interval, which an exact test must be able to reach.
    """
    if why := undecidable(len(differences), diverged, alpha):
        return why
    e = estimate(differences, 1 - alpha)
    if e.low > 0:
        return "holds"
    return "fails" if e.high < 0 else "undecided: the interval covers 0"


def margin_verdict(
    differences: Sequence[float], margin: float, diverged: int, alpha: float = ALPHA
) -> str:
    """Whether differences, one a seed, are 0 within a margin: holds, fails, or undecided.

    Args:
        differences, diverged, alpha: as for ``sign_verdict``.
        margin: what is taken for nothing, on either side.
    """
    if why := undecidable(len(differences), diverged, alpha):
        return why
    e = estimate(differences, 1 - alpha)
    if -margin < e.low and e.high < margin:
        return "holds"
    is_apart = e.low > margin or e.high < -margin
    return "fails" if is_apart else "undecided: the interval covers an end of the margin"


def undecidable(n: int, diverged: int, alpha: float = ALPHA) -> str:
    """Why nothing can be said of ``n`` pairs, of which others diverged; empty if it can."""
    if diverged:
        return "undecided: runs diverged, and the others are a selection"
    if not n:
        return "no data"
    needed = seeds_needed(alpha)
    return f"undecided: {n} seed{'s' if n > 1 else ''}, {needed} needed" if n < needed else ""
