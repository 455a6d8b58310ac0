"""The test of one case of a statement: one kind of network, one model, or a formula."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import stdev
from typing import Self

from normscope.statistics.estimate import estimate, estimate_median
from normscope.statistics.levels import ALPHA, FEWEST
from normscope.statistics.means import Hypothesis, sign_flip, sign_test, student
from normscope.verdicts.reading import Reading
from normscope.verdicts.vocabulary import Extent

SMALLEST = math.ulp(0.0)
SELECTION = "undecided: runs diverged, and the others are a selection"
MIXTURE = "undecided: models failed to train, and a mean would mix two outcomes"
GREATEST = math.nextafter(math.inf, 0)
TESTS = {"t": student, "equivalence": student, "sign_flip": sign_flip, "median": sign_test}
PLURALS = {"model": "seeds", "prompt": "prompts", "family": "families", "formula": "facts"}


@dataclass(frozen=True)
class Case:
    """The result of one test.

    Args:
        effect, low, high: The quantity with its confidence interval; NaN if there is none.
        n: The number of units.
        unit: The unit of replication.
        p_holds, p_fails: One-sided p-values for the statement and for its opposite; NaN without
            a test.
        p_beyond: One-sided p-value that the quantity lies beyond the margin as well.
        smallest: The smallest one-sided p-value that this number of units can give.
        spread: Standard deviation over units; of logarithms on a logarithmic scale.
        seeds: The seeds of the models that are compared.
        fact: The answer of a deterministic case; None if it is tested.
        extents: The sizes, trainings and texts of these models.
        series: What the case compares, the same for cases that differ in their extents only.
        open: Why the case cannot be tested; empty otherwise.
    """

    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    unit: str = "model"
    p_holds: float = math.nan
    p_fails: float = math.nan
    p_beyond: float = math.nan
    smallest: float = math.nan
    spread: float = math.nan
    seeds: tuple[int, ...] = ()
    extents: tuple[Extent, ...] = ()
    series: str = ""
    fact: bool | None = None
    open: str = ""

    def answer(self, alpha: float = ALPHA) -> str:
        """The answer of this case: holds, fails, or undecided with the reason."""
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
        """A case that cannot be tested."""
        return cls(open=why)

    @classmethod
    def known(cls, answer: bool, effect: float = math.nan, seeds: Iterable[int] = ()) -> Self:
        """A deterministic case, with the seeds of the models that it is about, if it is."""
        seen = tuple(sorted({int(seed) for seed in seeds}))
        return cls(effect=effect, n=1, unit="formula", fact=answer, seeds=seen)


def too_few(n: int, unit: str = "model") -> str:
    """Why there are too few units for a test; empty if there are enough."""
    if not n:
        return "no data"
    return f"undecided: {units(n, unit)}, {FEWEST} needed" if n < FEWEST else ""


def units(n: int, unit: str) -> str:
    """A number of units in words: 1 seed, 25 prompts."""
    return f"{n} {PLURALS[unit] if n != 1 else {'model': 'seed'}.get(unit, unit)}"


def log(value: float) -> float:
    """The logarithm, with 0 and infinity replaced by the smallest and the largest float."""
    return math.log(min(max(value, SMALLEST), GREATEST))


def exp(value: float) -> float:
    """The exponential, at most the largest float."""
    return GREATEST if value >= math.log(GREATEST) else math.exp(value)


def decide(reading: Reading, values: Sequence[float], *, level: float) -> Case:
    """Test a reading on the values of its quantity, one per unit.

    The mean (of logarithms on a logarithmic scale) is compared with the bound by Student's t-test,
    or by sign flips if the reading asks for them; then there is no interval. With ``test: median``
    the median is compared, by the sign test. Below ``FEWEST`` units there is no p-value.

    Args:
        values: The values; finite, except on a logarithmic scale.
        level: The confidence level of the interval.
    """
    if not len(values):
        return Case.unknown("no data")
    is_log = reading.scale == "log"
    scaled = [log(v) if is_log else v for v in values]
    limit = log(reading.limit) if is_log else reading.limit
    distances = [v - limit for v in scaled]
    is_median = reading.test == "median"
    e = estimate_median(scaled, level) if is_median else estimate(scaled, level)
    mean, low, high = (exp(v) if is_log else v for v in (e.mean, e.low, e.high))
    if reading.test == "sign_flip":  # Student's interval of outcomes 0 and 1 may exceed [-1, 1]
        low = high = math.nan
    case = Case(mean, low, high, n=len(scaled), unit=reading.unit)
    if len(scaled) < FEWEST:
        return case
    width = 0.0 if reading.margin is None else log(reading.margin) if is_log else reading.margin
    hypothesis = Hypothesis(reading.direction, width)
    test = TESTS[reading.test]
    main = hypothesis.tested(distances, test)
    return replace(
        case,
        p_holds=main.greater,
        p_fails=main.less,
        p_beyond=hypothesis.beyond(distances, test),
        smallest=main.smallest,
        spread=stdev(distances),
    )
