"""The test of a comparison: effect, interval, n and p, and whether it is decided.

A comparison is decided if its two-sided p is below ``DECISIVE_P`` (Benjamin et al. 2018).
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from normscope.schema import FLOATS, Strict
from normscope.statistics.estimate import estimate, estimate_median
from normscope.statistics.levels import DECISIVE_P, FEWEST
from normscope.statistics.means import Test, sign_flip, sign_test, student
from normscope.statistics.power import enough
from normscope.verdicts.comparison import Comparison, Outcome
from normscope.verdicts.sample import Sample


def _number(value: float | None) -> float:
    """A number with the digits of tables, on which processors agree; JSON has no NaN."""
    return math.nan if value is None else float(f"{value:{FLOATS}}")


Number = Annotated[float, BeforeValidator(_number)]
SMALLEST, GREATEST = math.ulp(0.0), math.nextafter(math.inf, 0)


class Result(Strict):
    """The result of one comparison.

    Args:
        outcome: Whether the expectation is met, its opposite is, or neither is decided.
        reason: Why it is undecided; empty otherwise.
        effect, low, high: The quantity with its interval; NaN if there is none.
        n: The number of seeds, or of rows of a table without seeds.
        p: The two-sided p-value; NaN without a test.
        means: The mean of each side.
        enough: About how large n has to be to decide it, at the measured spread; 0 if unknown.
    """

    outcome: Outcome = "undecided"
    reason: str = ""
    effect: Number = math.nan
    low: Number = math.nan
    high: Number = math.nan
    n: int = 0
    p: Number = math.nan
    means: tuple[Number, ...] = ()
    enough: int = 0

    @property
    def is_fact(self) -> bool:
        """Whether one row decided it, without a test."""
        return self.outcome != "undecided" and math.isnan(self.p)


def result(comparison: Comparison, given: Sample, *, is_count: bool, level: float) -> Result:
    """Test a comparison on its values.

    The mean (of logarithms, for factors) is compared with the ends of what is expected by Student's
    t, that of counts of outcomes by sign flips, and a median by the sign test. Between two ends,
    both one-sided tests must agree (Schuirmann 1987).

    Args:
        is_count: Whether the measure counts outcomes, such as failures.
    """
    if given.reason:
        return Result(reason=given.reason, means=given.means)
    low, high = comparison.expectation.bounds(is_ratio=given.is_log)
    if comparison.expectation.always:
        return _fact(given, low, high)
    scaled = [log(v) if given.is_log else v for v in given.values]
    is_median = comparison.measurement.is_median
    e = estimate_median(scaled, level) if is_median else estimate(scaled, level)
    ends = [exp(v) if given.is_log else v for v in (e.mean, e.low, e.high)]
    if is_count:  # Student's interval of outcomes 0 and 1 may exceed [-1, 1]
        ends[1:] = math.nan, math.nan
    interval = dict(zip(("effect", "low", "high"), ends, strict=True))
    facts = {**interval, "n": len(scaled), "means": given.means}
    if len(scaled) < FEWEST:
        return Result(**facts, reason=f"n = {len(scaled)}, {FEWEST} needed")
    test = sign_test if is_median else sign_flip if is_count else student
    bounds = [log(v) if given.is_log and math.isfinite(v) else v for v in (low, high)]
    return Result(**facts, **_decision(scaled, bounds, test))


def _decision(values: Sequence[float], bounds: Sequence[float], test: Test) -> dict[str, Any]:
    """Outcome, reason and p of a test against one end, or two."""
    low, high = (test(values, end) if math.isfinite(end) else None for end in bounds)
    inside = [*([low.greater] if low else []), *([high.less] if high else [])]
    outside = [*([low.less] if low else []), *([high.greater] if high else [])]
    claimed, against = min(1.0, 2 * max(inside)), min(1.0, 2 * min(outside))
    p = min(claimed, against)
    smallest = 2 * max(one.smallest for one in (low, high) if one)
    if p >= DECISIVE_P:
        is_limited = smallest >= DECISIVE_P
        why = f"n = {len(values)} gives no p below {smallest:.2g}" if is_limited else f"p = {p:.2g}"
        is_median, ends = test is sign_test, filter(math.isfinite, bounds)
        needed = max(enough(values, end, is_median=is_median) for end in ends)
        return {"p": p, "reason": why, "enough": needed}
    return {"p": p, "outcome": "as claimed" if claimed < DECISIVE_P else "opposite"}


def _fact(given: Sample, low: float, high: float) -> Result:
    """The result that the row farthest from what is expected determines."""
    worst = max(given.values, key=lambda value: max(low - value, value - high))
    return Result(
        outcome="as claimed" if low < worst < high else "opposite",
        effect=worst,
        n=len(given.values),
        means=given.means,
    )


def log(value: float) -> float:
    """The logarithm, with 0 and infinity replaced by the smallest and the largest float."""
    return math.log(min(max(value, SMALLEST), GREATEST))


def exp(value: float) -> float:
    """The exponential, at most the largest float."""
    return GREATEST if value >= math.log(GREATEST) else math.exp(value)
