"""A comparison: what is measured, in which models, and what a statement expects of it.

``measure`` is ``table.expression`` of a study, with ``median`` before it if the median over models
is meant instead of their mean. ``compare`` names one side, or two with `` - `` (a difference) or
`` / `` (a ratio) between them.
"""

import functools
import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from normscope.io.names import Key
from normscope.schema import Strict
from normscope.verdicts.expression import check_measure

Outcome = Literal["as claimed", "opposite", "undecided"]
Value = str | bool | int | float
NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
MEASURE = re.compile(r"(?P<median>median )?(?P<table>[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*)\.(?P<of>.+)")
EXPECT = re.compile(
    rf"(?P<always>always )?(?:(?P<word>below|above|within) (?P<x>{NUMBER})"
    rf"|between (?P<low>{NUMBER}) and (?P<high>{NUMBER}))"
)


@dataclass(frozen=True)
class Measure:
    """A quantity of a model.

    Args:
        table: ``study.table``, with one row per model.
        expression: Arithmetic of the table's columns.
        is_median: Whether the median over models is meant, instead of their mean.
    """

    table: str
    expression: str
    is_median: bool

    @property
    def study(self) -> str:
        """The study whose table it is."""
        return self.table.partition(".")[0]


@dataclass(frozen=True)
class Expectation:
    """Where a quantity is expected to lie.

    Args:
        low, high: The ends; one of them may be infinite.
        always: Whether every row is meant, so that one row decides, and not a mean.
        is_within: Whether the ends are a margin around no difference, whose lower end is the
            inverse of the upper one for a ratio.
    """

    low: float
    high: float
    always: bool = False
    is_within: bool = False

    def bounds(self, *, is_ratio: bool) -> tuple[float, float]:
        """Both ends, for a ratio or for a difference."""
        return (1 / self.high, self.high) if self.is_within and is_ratio else (self.low, self.high)


@functools.cache
def measure(text: str) -> Measure:
    """What a measure's text names."""
    match = MEASURE.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r}: give study.table.column, or arithmetic of its columns")
    return Measure(match["table"], check_measure(match["of"]), bool(match["median"]))


@functools.cache
def expectation(text: str) -> Expectation:
    """What an expectation's text says."""
    match = EXPECT.fullmatch(text)
    if not match:
        raise ValueError(
            f"{text!r}: give below x, above x, within x, or between x and y, with 'always' before "
            "it if every row is meant"
        )
    always = bool(match["always"])
    if match["word"] is None:
        low, high = float(match["low"]), float(match["high"])
        if low >= high:
            raise ValueError(f"{text!r}: the first number is the smaller one")
        return Expectation(low, high, always)
    x = float(match["x"])
    if match["word"] == "within":
        if x <= 0:
            raise ValueError(f"{text!r}: a margin is above 0")
        return Expectation(-x, x, always, is_within=True)
    ends = (-math.inf, x) if match["word"] == "below" else (x, math.inf)
    return Expectation(*ends, always)


@functools.cache
def sides(text: str) -> tuple[tuple[str, ...], str]:
    """The one or two sides of a comparison, and what is between them: ``-``, ``/`` or nothing.

    Raises:
        ValueError: There are more than two sides, or one is empty.
    """
    first, operator, second = re.fullmatch(r"(.*?)(?: ([-/]) (.*))?", text.strip()).groups()  # pyright: ignore[reportOptionalMemberAccess]
    if operator is None:
        return (first,), ""
    if not first or not second or " - " in second or " / " in second:
        raise ValueError(f"{text!r} is no comparison: give a, a - b or a / b")
    return (first, second), operator


def _is_value(given: Any) -> Any:
    listed = given if isinstance(given, list) else [given]
    if not listed or not all(isinstance(value, Value) for value in listed):
        raise ValueError(f"{given!r}: give a value of the column, or a list of values")
    return given


Cells = dict[Key, Annotated[Any, AfterValidator(_is_value)]]


def _valid(parse: Any) -> AfterValidator:
    def check(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(check)


class Comparison(Strict):
    """What is measured of which models, and what is expected.

    Args:
        measure: The quantity.
        models: Values of columns that all sides have; a list pools the models of its values.
        compare: The sides, as values of columns: ``rmsnorm``, or ``depth=48`` where a value alone
            does not tell its column. Empty if there is one side, which ``models`` determines.
        expect: Where the quantity, or the difference or ratio of the sides, is expected to lie.
    """

    measure: Annotated[str, _valid(measure)]
    models: Cells = Field(default={})
    compare: Annotated[str, _valid(sides)] = ""
    expect: Annotated[str, _valid(expectation)]

    @property
    def measurement(self) -> Measure:
        """What is measured."""
        return measure(self.measure)

    @property
    def expectation(self) -> Expectation:
        """What is expected."""
        return expectation(self.expect)

    @property
    def is_ratio(self) -> bool:
        """Whether the first side is divided by the second."""
        return sides(self.compare)[1] == "/"
