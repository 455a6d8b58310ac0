"""Whether the sides and cases of a contrast are distinct, whatever the data. Needs no pandas."""

from collections.abc import Iterator
from typing import Any

from normscope.verdicts import expression
from normscope.verdicts.comparison import SEED, Cells, Contrast
from normscope.verdicts.vocabulary import Cell, Vocabulary

Faults = Iterator[tuple[str, str]]  # key of the contrast, and what is wrong


def faults(c: Contrast, vocabulary: Vocabulary) -> Faults:
    """Sides that are equal, or that have no case in common.

    Cells without rows are allowed, because the configuration decides what a name stands for.
    """
    yield from _in_seeds(c)
    yield from _in_other(c, vocabulary)
    if c.as_published is not None and c.cells | c.as_published == c.cells:
        yield "as_published", "names nothing that differs from cells"


def span(c: Contrast, vocabulary: Vocabulary) -> expression.Range:
    """The range of the contrast's quantity."""
    if c.over is not None:
        return expression.ANYTHING
    low, high = expression.span(c.measure, vocabulary.ranges)
    return (low, high) if c.less is None else (low - high, high - low)


def _words(cells: Cells) -> str:
    return ", ".join(f"{column}: {value}" for column, value in cells.items())


def _in_seeds(c: Contrast) -> Faults:
    """The column that pairs rows cannot also distinguish sides, cases or settings."""
    for place, columns in {
        "less": c.less or {},
        "over": c.over or {},
        "each": c.each,
        "at.column": [c.at.column] if c.at else [],
        "best.columns": c.best.columns if c.best else [],
    }.items():
        if SEED in columns:
            yield place, f"{SEED} pairs rows and is counted: name another column"


def _in_other(c: Contrast, vocabulary: Vocabulary) -> Faults:
    """Whether the second side differs from the cells and has cases in common with them."""
    if c.other is None:
        return
    place = "less" if c.over is None else "over"
    first = vocabulary.cells(c.cells)
    for value in _partner_values(c):
        changes = c.other if value is None else {**c.other, c.partners[0]: value}
        second = vocabulary.cells({**c.cells, **changes})
        if first and _same(first, second):
            yield (
                place,
                f"names nothing that differs from cells: {_words(changes) or 'it is empty'}",
            )
    shared = [*c.each, *([c.at.column] if c.at else [])]
    for column in c.other:
        if column in shared:
            yield place, f"{column} differs between the sides, and each case has one value of it"


def _partner_values(c: Contrast) -> list[Any]:
    """The values of the column that lists several on the second side; None if no column does."""
    given = (c.other or {})[c.partners[0]] if c.partners else None
    return given if isinstance(given, list) else [None]


def _same(first: list[Cell], second: list[Cell]) -> bool:
    return all(cell in second for cell in first) and all(cell in first for cell in second)
