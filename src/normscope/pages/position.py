"""Where an effect lies from its bound, on a scale that all statements share.

The position of an effect is its distance from the bound of its reading, positive in the direction
of the statement, in units of the margin. Without a margin, the unit is the distance of the bound
from no difference (0, or a factor of 1); a reading that has neither is measured in the unit of its
quantity. Bounds, margins and effects of a logarithmic scale enter by their logarithms, and its
last unit is a factor of two.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from normscope.pages.table import Row

Interval = tuple[float, float]
FAR = 100.0  # positions beyond it are drawn at the edge


class Mark(NamedTuple):
    """An effect on the common scale.

    Args:
        at: its position.
        low, high: the ends of its interval; None without one.
    """

    at: float
    low: float | None
    high: float | None


class Place(NamedTuple):
    """The mark of a case, what the case reads alone, and whether the verdict rests on it."""

    mark: Mark
    reads: str
    decides: bool


class Scale(NamedTuple):
    """The common scale of a reading.

    Args:
        bound: the bound, as a logarithm on a logarithmic scale.
        unit: the length of one unit.
        side: -1 if the reading asserts values below its bound, otherwise 1.
        is_log: whether effects enter by their logarithms.
        holds: the positions that support the reading.
        is_own: whether the unit is that of the quantity, for want of a bound and a margin.
    """

    bound: float
    unit: float
    side: int
    is_log: bool
    holds: Interval
    is_own: bool

    def mark(self, case: Row) -> Mark | None:
        """The mark of a case; None if it has no effect."""
        at, low, high = (self._at(case[end]) for end in ("effect", "low", "high"))
        if low is not None and high is not None and low > high:
            low, high = high, low
        return None if at is None else Mark(at, low, high)

    def _at(self, value: float | None) -> float | None:
        if value is None:
            return None
        if self.is_log:
            value = math.log(max(value, math.ulp(0.0)))
        return self.side * (value - self.bound) / self.unit


def scale_of(reading: Row) -> Scale | None:
    """The scale of a reading; None if it has no direction, or is deterministic."""
    if reading["direction"] is None or reading["test"] in ("fact", "none"):
        return None
    is_log = reading["scale"] == "log"
    none = 1.0 if is_log else 0.0
    bound = none if reading["bound"] is None else reading["bound"]
    margin, own = reading["margin"], 1.0
    if is_log:
        bound, own = math.log(bound), math.log(2)
        margin = None if margin is None else math.log(margin)
    unit = margin or abs(bound) or own
    side = -1 if reading["direction"] == "less" else 1
    holds = (-1.0, 1.0) if reading["direction"] == "within" else (float(bool(margin)), math.inf)
    return Scale(bound, unit, side, is_log, holds, is_own=not (margin or bound))


def places(claim: Row) -> Iterator[Place]:
    """Where all cases of a statement that have a scale and an effect lie."""
    for name, reading in claim["readings"].items():
        scale = scale_of(reading)
        for case, values in reading["cases"].items():
            if scale and (mark := scale.mark(values)):
                decides = (name, case) == (claim["reading"], claim["case"])
                yield Place(mark, values["reads"].partition(":")[0], decides)


def share(position: float) -> float:
    """A position as a share of the axis from -FAR to FAR: linear near 0, logarithmic beyond."""
    inside = min(max(position, -FAR), FAR)
    return round(0.5 + 0.5 * math.asinh(inside) / math.asinh(FAR), 4)
