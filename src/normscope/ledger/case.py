"""One test of a statement: in one kind of network, of one model, or of a formula."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import stdev
from typing import NamedTuple, Self

from normscope.ledger.entry import Entry
from normscope.statistics.estimate import ALPHA, FEWEST, estimate
from normscope.statistics.means import Test, equivalence, hedges_g, sign_flip, student

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
        flips_holds, flips_fails: the same by sign flips, which need no normality.
        smallest: the least one-sided p that so many units can give.
        g: Hedges' g of the units' distances from the bound.
        spread: standard deviation over units, of logarithms on a logarithmic scale.
        standardized: distance of the mean from the nearest value at which the answer would be
            another (the bound, or an end of the margin), in spreads.
        models: trained for one unit, at all settings that were tried; 0 where that is not known.
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
    flips_holds: float = math.nan
    flips_fails: float = math.nan
    smallest: float = math.nan
    g: float = math.nan
    spread: float = math.nan
    standardized: float = math.nan
    models: int = 0
    fact: bool | None = None
    open: str = ""

    def reading(self, alpha: float = ALPHA) -> str:
        """The answer of this case alone: holds, fails, or undecided with the reason."""
        if self.open:
            return self.open
        if self.fact is not None:
            return "holds" if self.fact else "fails"
        if math.isnan(self.p_holds):
            return too_few(self.n, self.unit) or "no data"
        if 2 * self.smallest > alpha:
            return f"undecided: {units(self.n, self.unit)} give no p below {2 * self.smallest:.2g}"
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


def too_few(n: int, unit: str = "model") -> str:
    """Why so few units say nothing; empty if they are enough."""
    if not n:
        return "no data"
    return f"undecided: {units(n, unit)}, {FEWEST} needed" if n < FEWEST else ""


def units(n: int, unit: str) -> str:
    """How many of what: 1 seed, 25 prompts."""
    return f"{n} {PLURALS[unit] if n != 1 else {'model': 'seed'}.get(unit, unit)}"


def log(value: float) -> float:
    """The logarithm; of 0 and of infinity that of the least and the greatest float."""
    return math.log(min(max(value, SMALLEST), GREATEST))


def exp(value: float) -> float:
    """The exponential; the greatest float where that is beyond it."""
    return GREATEST if value >= math.log(GREATEST) else math.exp(value)


def decide(entry: Entry, values: Sequence[float], *, level: float) -> Case:
    """The test of an entry on a quantity's values, one a unit.

    The mean (of logarithms on a logarithmic scale) is compared with the bound by Student's t, or by
    sign flips where the entry asks for these, without an interval; the other one stands beside it.
    The interval is Student's. Below ``FEWEST`` units there is no p.

    Args:
        values: in the quantity's own unit; finite but on a logarithmic scale.
        level: confidence level of the interval.
    """
    if not len(values):
        return Case.unknown("no data")
    is_log = entry.scale == "log"
    scaled = [log(v) if is_log else v for v in values]
    limit = log(entry.limit) if is_log else entry.limit
    distances = [v - limit for v in scaled]
    e = estimate(scaled, level)
    mean, low, high = (exp(v) if is_log else v for v in (e.mean, e.low, e.high))
    if entry.test == "sign_flip":  # of outcomes that are 0 or 1 Student's would leave -1 to 1
        low = high = math.nan
    case = Case(mean, low, high, n=len(scaled), unit=entry.unit, g=hedges_g(distances))
    if len(scaled) < FEWEST:
        return case
    flips = _sides(entry, distances, sign_flip)
    main = flips if entry.test == "sign_flip" else _sides(entry, distances, student)
    spread, distance = stdev(distances), _distance(entry, distances)
    return replace(
        case,
        p_holds=main.holds,
        p_fails=main.fails,
        flips_holds=flips.holds,
        flips_fails=flips.fails,
        smallest=main.smallest,
        spread=spread,
        standardized=distance / spread if spread else math.inf,
    )


class _Sides(NamedTuple):
    """One-sided p for and against a statement, and the least that there can be."""

    holds: float
    fails: float
    smallest: float


def _width(entry: Entry) -> float:
    """The margin on the entry's scale; 0 without one."""
    if entry.margin is None:
        return 0.0
    return math.log(entry.margin) if entry.scale == "log" else entry.margin


def _sides(entry: Entry, distances: Sequence[float], test: Test) -> _Sides:
    """A test for and against an entry.

    A statement that a quantity is greater, with a margin, speaks of a difference that counts: what
    lies clearly below the margin refutes it, a small difference as well as one the other way; for
    it speaks a mean beyond the margin that is clearly greater than the bound. "Holds" is wrong
    where there is no difference, "fails" where there is one that counts: never both, so that the
    level needs no correction.
    """
    width = _width(entry)
    if entry.direction == "within":
        inside = equivalence(distances, width, test)
        return _Sides(inside.greater, inside.less, inside.smallest)
    signed = distances if entry.direction == "greater" else [-v for v in distances]
    tested, against = test(signed, 0.0), test(signed, width)
    is_small = width and math.fsum(signed) / len(signed) < width
    return _Sides(1.0 if is_small else tested.greater, against.less, tested.smallest)


def _distance(entry: Entry, distances: Sequence[float]) -> float:
    """How far the mean is from the nearest value at which the answer would be another."""
    mean, width = math.fsum(distances) / len(distances), _width(entry)
    if entry.direction == "within":
        return abs(abs(mean) - width)
    signed = mean if entry.direction == "greater" else -mean
    return width - signed if signed < width else signed
