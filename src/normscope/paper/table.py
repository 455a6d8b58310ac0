"""A table of a page: rows of data, written cell by cell into text.

A study says which column of its data stands under which title in which format. Markdown, HTML,
LaTeX and print are each made of the ``PageTable`` that comes of it.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from normscope import words
from normscope.errors import Explained
from normscope.nn.arms import ARMS
from normscope.words import DASH

Row = Mapping[str, Any]
Format = Callable[[Row], str]  # of a row, one cell
CELLS = "cells"  # of a crossed row: its records by name


class Column(NamedTuple):
    """What stands under a title.

    Args:
        title: of the column; neighbours that end in the same words after a comma share them.
        format: what writes a row's cell: one of the functions below, or of a study.
    """

    title: str
    format: Format


@dataclass(frozen=True)
class PageTable:
    """A table of text.

    Args:
        title: what captions and labels call it.
        columns: titles of the columns.
        rows: cells, as many a row as there are columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def cells(self, column: int) -> tuple[str, ...]:
        """The cells of a column, from above."""
        return tuple(row[column] for row in self.rows)

    def select(self, *columns: str) -> "PageTable":
        """These columns alone, in this order.

        Raises:
            Explained: it has no such column.
        """
        if lacking := [name for name in columns if name not in self.columns]:
            raise Explained(
                f"the table {self.title!r} has no column {', '.join(lacking)}; it has "
                f"{', '.join(self.columns)}"
            )
        places = [self.columns.index(name) for name in columns]
        return PageTable(self.title, columns, tuple(tuple(r[i] for i in places) for r in self.rows))


def to_rows(table: pd.DataFrame) -> list[Row]:
    """A table of data, record by record: values by the names of their columns."""
    return [{str(key): value for key, value in r.items()} for r in table.to_dict("records")]


def tabulate(
    title: str, rows: pd.DataFrame | Iterable[Row], columns: Sequence[Column]
) -> PageTable:
    """A page's table of rows of data; a table of data has a row a record."""
    records = to_rows(rows) if isinstance(rows, pd.DataFrame) else rows
    cells = tuple(tuple(column.format(row) for column in columns) for row in records)
    return PageTable(title, tuple(column.title for column in columns), cells)


def crossed(table: pd.DataFrame, keys: Sequence[str], names: str | Sequence[str]) -> list[Row]:
    """A row a combination of ``keys``, in the order in which they come.

    Its values are those of the first record; ``cells`` are all of its records by their ``names``,
    for ``at``.
    """
    rows: dict[Hashable, dict[str, Any]] = {}
    for record in to_rows(table):
        row = rows.setdefault(tuple(record[k] for k in keys), {**record, CELLS: {}})
        name = record[names] if isinstance(names, str) else tuple(record[k] for k in names)
        row[CELLS][name] = record
    return list(rows.values())


def at(name: Hashable, form: Format) -> Format:
    """A cell of a crossed row: the record of that name, or a dash where there is none."""
    return lambda row: form(row[CELLS][name]) if name in row[CELLS] else DASH


def text(key: str) -> Format:
    """The value as it stands; a dash where it is missing."""
    return lambda row: DASH if pd.isna(row[key]) else str(row[key])


def short(key: str) -> Format:
    """A number in the fewest digits that tell it: 0.0003."""
    return lambda row: DASH if pd.isna(row[key]) else f"{row[key]:g}"


def count(n: str = "n", diverged: str | None = None) -> Format:
    """How many; and, where there are any, how many diverged beside them."""

    def form(row: Row) -> str:
        known = 0 if pd.isna(row[n]) else int(row[n])
        lost = diverged and int(row[diverged])
        return f"{known}, {lost} diverged" if lost else str(known)

    return form


def yes_no(key: str) -> Format:
    """A truth."""
    return lambda row: "yes" if row[key] else "no"


def label(key: str = "arm") -> Format:
    """How people call an arm."""
    return lambda row: ARMS[row[key]].label


def setting(key: str = "rate", at_edge: str = "at_edge") -> Format:
    """A setting that was chosen, with a mark where the best may lie beyond those tried."""
    return lambda row: f"{row[key]:g}{' (at the edge)' if row[at_edge] else ''}"


def number(key: str, digits: int = 3, *, sign: bool = False, log: bool = False) -> Format:
    """A number to so many decimals.

    Args:
        key: its column.
        sign: whether a plus is written.
        log: whether the column is a natural logarithm of what is shown.
    """
    return lambda row: words.number(_value(row[key], log), digits, sign)


def significant(key: str, *, log: bool = False) -> Format:
    """A number to 3 digits, over many orders of magnitude."""
    return lambda row: words.significant(_value(row[key], log))


def interval(
    low: str, high: str, digits: int = 3, *, sign: bool = False, log: bool = False
) -> Format:
    """``[low, high]``, or a dash where there is none."""
    return lambda row: words.interval(_value(row[low], log), _value(row[high], log), digits, sign)


def estimate(mean: str, low: str, high: str, form: Callable[[float], str] = words.number) -> Format:
    """A mean with its interval, if it has one: ``1.900 [1.850, 1.950]``."""

    def cell(row: Row) -> str:
        bounds = "" if pd.isna(row[low]) else f" [{form(row[low])}, {form(row[high])}]"
        return form(row[mean]) + bounds

    return cell


def _value(value: float, log: bool) -> float:
    return math.exp(value) if log else float(value)
