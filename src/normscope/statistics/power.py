"""What a comparison can find: the smallest difference that n pairs detect, and the n it takes."""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

from normscope.statistics.levels import DECISIVE_P, FEWEST

POWER = 0.9
MOST = 1000  # values that anybody would measure
TINY = 0.05  # standard deviations, which take more values than these


def detectable(n: int, sd: float, alpha: float = 0.05, power: float = POWER) -> float:
    """The smallest mean difference that a paired t-test finds with probability ``power``.

    NaN with fewer than ``FEWEST`` pairs, which decide nothing.

    Args:
        n: Pairs.
        sd: Standard deviation of the differences.
        alpha: Level of the two-sided test.
    """
    from statsmodels.stats.power import TTestPower  # noqa: PLC0415 - it takes a second

    if n < FEWEST or not math.isfinite(sd):
        return math.nan
    return sd * float(TTestPower().solve_power(nobs=n, alpha=alpha, power=power))


def enough(values: Sequence[float], end: float, *, is_median: bool, power: float = POWER) -> int:
    """About the n that decides, with probability ``power``, on which side of an end a mean lies.

    Its distance in standard deviations is taken to be that of the values; for a median and the
    sign test, the share of values beyond the end is. Normal approximation, with Guenther's (1981)
    correction for Student's t.
    """
    level, chance = map(NormalDist().inv_cdf, (1 - DECISIVE_P / 2, power))
    if is_median:
        share = sum(value > end for value in values) / len(values)
        size, more = 2 * math.asin(math.sqrt(share)) - math.pi / 2, 0.0
    else:
        size, more = (fmean(values) - end) / (stdev(values) or math.ulp(0.0)), level**2 / 2
    return math.ceil(((level + chance) / max(abs(size), TINY)) ** 2 + more)
