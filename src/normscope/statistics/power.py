"""What a comparison can find: the smallest difference that n pairs detect."""

import math

from normscope.statistics.levels import FEWEST

POWER = 0.9


def detectable(n: int, sd: float, alpha: float = 0.05) -> float:
    """The smallest mean difference that a paired t-test finds with probability ``POWER``.

    NaN with fewer than ``FEWEST`` pairs, which decide nothing.

    Args:
        n: Pairs.
        sd: Standard deviation of the differences.
        alpha: Level of the two-sided test.
    """
    from statsmodels.stats.power import TTestPower  # noqa: PLC0415 - it takes a second

    if n < FEWEST or not math.isfinite(sd):
        return math.nan
    return sd * float(TTestPower().solve_power(nobs=n, alpha=alpha, power=POWER))
