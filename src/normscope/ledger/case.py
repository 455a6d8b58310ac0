"""One test of a statement: in one kind of network, of one model, or of a formula."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from normscope.ledger.entry import Entry
from normscope.statistics.estimate import ALPHA, estimate, seeds_needed
from normscope.statistics.inference import Flips, bootstrap_mean, equivalence, hedges_g, sign_flip

RESAMPLES = 9999  # of units, for intervals
SMALLEST = math.ulp(0.0)
SELECTION = "undecided: runs diverged, and the others are a selection"
GREATEST = math.nextafter(math.inf, 0)
PLURALS = {"model": "seeds", "prompt": "prompts", "family": "families", "formula": "formulas"}


@dataclass(frozen=True)
class Case:
    """What was found in one place.

    Args:
        effect, low, high: the quantity with its interval, in its own unit; NaN where there is none.
        n: units.
        unit: what is counted.
        p_holds, p_fails: one-sided p for the statement and for its contrary; NaN without a test.
        smallest: the least one-sided p that so many units can give.
        g: Hedges' g of the units' distances from the bound.
        fact: the answer where one case decides and chance has no part.
        open: why nothing can be said; empty otherwise.
    """

    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    unit: str = "model"
    p_holds: float = math.nan
    p_fails: float = math.nan
    smallest: float = math.nan
    g: float = math.nan
    fact: bool | None = None
    open: str = ""

    def reading(self, alpha: float = ALPHA) -> str:
        """The answer of this case alone: holds, fails, or undecided with the reason."""
        if self.open:
            return self.open
        if self.fact is not None:
            return "holds" if self.fact else "fails"
        if math.isnan(self.p_holds):
            return "no data"
        if 2 * self.smallest > alpha:
            # of a permutation test, units enough for sign flips may be too few
            least = f"{units(self.n, self.unit)} give no p below {2 * self.smallest:.2g}"
            return too_few(self.n, self.unit, alpha) or f"undecided: {least}"
        if 2 * self.p_holds < alpha:
            return "holds"
        return "fails" if 2 * self.p_fails < alpha else f"undecided: p is above {alpha:g}"

    @classmethod
    def unknown(cls, why: str) -> Self:
        """Nothing can be said."""
        return cls(open=why)

    @classmethod
    def known(cls, answer: bool, effect: float = math.nan) -> Self:
        """One case decides."""
        return cls(effect=effect, n=1, unit="formula", fact=answer)


def too_few(n: int, unit: str = "model", alpha: float = ALPHA) -> str:
    """Why so few units say nothing; empty if they are enough."""
    if not n:
        return "no data"
    needed = seeds_needed(alpha)
    return f"undecided: {units(n, unit)}, {needed} needed" if n < needed else ""


def units(n: int, unit: str) -> str:
    """How many of what: 1 seed, 25 prompts."""
    return f"{n} {PLURALS[unit] if n != 1 else {'model': 'seed'}.get(unit, unit)}"


def log(value: float) -> float:
    """The logarithm; of 0 and of infinity that of the least and the greatest float."""
    return math.log(min(max(value, SMALLEST), GREATEST))


def exp(value: float) -> float:
    """The exponential; the greatest float where that is beyond it."""
    return GREATEST if value >= math.log(GREATEST) else math.exp(value)


def decide(
    entry: Entry,
    values: Sequence[float],
    *,
    bound: float | None = None,
    margin: float | None = None,
    level: float,
) -> Case:
    """The exact test of an entry on a quantity's values, one a unit.

    The mean (of logarithms on a logarithmic scale) is compared with the bound by sign flips. The
    interval is BCa over units, and Student's t below 3 of them.

    Args:
        values: in the quantity's own unit; finite but on a logarithmic scale.
        bound, margin: where these are columns and not the entry's numbers.
        level: confidence level of the interval.
    """
    if not len(values):
        return Case.unknown("no data")
    is_log = entry.scale == "log"
    scaled = [log(v) if is_log else v for v in values]
    limit = entry.limit if bound is None else bound
    limit = log(limit) if is_log else limit
    distances = [v - limit for v in scaled]
    flips, p_holds, p_fails = _flipped(entry, distances, margin)
    e = bootstrap_mean(scaled, level, RESAMPLES) if len(scaled) > 2 else estimate(scaled, level)
    mean, low, high = (exp(v) if is_log else v for v in (e.mean, e.low, e.high))
    return Case(
        mean,
        low,
        high,
        n=len(scaled),
        unit=entry.unit,
        p_holds=p_holds,
        p_fails=p_fails,
        smallest=flips.smallest,
        g=hedges_g(distances),
    )


def _flipped(
    entry: Entry, distances: Sequence[float], margin: float | None
) -> tuple[Flips, float, float]:
    """The test, and its one-sided p for and against the statement."""
    if entry.direction != "within":
        flips = sign_flip(distances)
        if entry.direction == "greater":
            return flips, flips.greater, flips.less
        return flips, flips.less, flips.greater
    width = entry.margin if margin is None else margin
    assert isinstance(width, float | int), entry.statement
    flips = equivalence(distances, math.log(width) if entry.scale == "log" else width)
    return flips, flips.greater, flips.less
