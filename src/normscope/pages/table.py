"""Tables of pages: values together with the formats that print them.

A study fills a ``PageTable`` from its data with the column builders below. The values stay numbers
until Markdown, HTML, LaTeX or the print writes them.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from normscope.columns import Table
from normscope.errors import Explained
from normscope.formats import DASH, GENERAL, INTEGER, Format, decimals

Row = Mapping[str, Any]
DECIMALS = decimals()
CELLS = "cells"  # of a crossed row: its records by name


@dataclass(frozen=True)
class Number:
    """A number in a sentence, with the format that prints it; None is a missing value."""

    value: float | None
    format: Format

    def __str__(self) -> str:
        return self.format.text(self.value)


@dataclass(frozen=True)
class Quantity:
    """A cell that is more than a number.

    Args:
        value: the number; None if the cell shows an interval alone.
        low, high: ends of its interval, if it has one.
        note: text directly after it, such as " (end of the range)".
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


Cell = None | str | int | float | Quantity


@dataclass(frozen=True)
class Column:
    """A column of a page's table.

    Args:
        title: its heading.
        format: of its numbers; None in a column of text.
    """

    title: str
    format: Format | None = None

    def text(self, cell: Cell) -> str:
        """A cell as readers see it."""
        if cell is None:
            return DASH
        if isinstance(cell, str) or self.format is None:
            return str(cell)
        if not isinstance(cell, Quantity):
            return self.format.text(cell)
        write = self.format.text
        bounds = None if cell.low is None else f"[{write(cell.low)}, {write(cell.high)}]"
        value = None if cell.value is None else write(cell.value)
        return " ".join(filter(None, [value, bounds])) + cell.note


@dataclass(frozen=True)
class PageTable:
    """A table of a page.

    Args:
        title: used in captions and labels.
        columns: its columns.
        rows: one cell per column each.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def headings(self) -> list[str]:
        """The headings of the columns."""
        return [column.title for column in self.columns]

    def texts(self) -> list[list[str]]:
        """The rows as readers see them."""
        return [
            [column.text(cell) for column, cell in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]

    def cells(self, column: int) -> list[Cell]:
        """The cells of a column."""
        return [row[column] for row in self.rows]

    def is_numeric(self, column: int) -> bool:
        """Whether a column has a format, and nothing in it but plain numbers and dashes."""
        known = [cell for cell in self.cells(column) if cell is not None]
        is_plain = all(isinstance(cell, int | float) for cell in known)
        return self.columns[column].format is not None and is_plain and bool(known)

    def select(self, *headings: str) -> "PageTable":
        """The table with these columns only, in this order.

        Raises:
            Explained: it has no such column.
        """
        known = self.headings
        if lacking := [name for name in headings if name not in known]:
            raise Explained(
                f"the table {self.title!r} has no column {', '.join(lacking)}; it has "
                f"{', '.join(known)}"
            )
        places = [known.index(name) for name in headings]
        rows = tuple(tuple(row[i] for i in places) for row in self.rows)
        return PageTable(self.title, tuple(self.columns[i] for i in places), rows)


class Field(NamedTuple):
    """A column, and the function that takes its cell from a row of data."""

    column: Column
    cell: Callable[[Row], Any]


def to_rows(table: pd.DataFrame) -> list[Row]:
    """A data frame as records: values by the names of their columns."""
    return [{str(key): value for key, value in r.items()} for r in table.to_dict("records")]


def tabulate(title: str, rows: pd.DataFrame | Iterable[Row], fields: Sequence[Field]) -> PageTable:
    """A page's table with one row per record."""
    records = to_rows(rows) if isinstance(rows, pd.DataFrame) else rows
    cells = tuple(tuple(as_python(field.cell(row)) for field in fields) for row in records)
    return PageTable(title, tuple(field.column for field in fields), cells)


def as_python(value: Any) -> Any:
    """A value as a type of Python instead of NumPy; None if it is missing."""
    if isinstance(value, Quantity):
        numbers = map(as_python, (value.value, value.low, value.high))
        return Quantity(*numbers, note=value.note)
    if pd.isna(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def cross(table: pd.DataFrame, keys: Sequence[str], names: str | Sequence[str]) -> list[Row]:
    """One row per combination of ``keys``, in the order in which they first occur.

    A row has the values of its first record, and under ``cells`` all of its records by their
    ``names``, which ``at`` reads.
    """
    rows: dict[Hashable, dict[str, Any]] = {}
    for record in to_rows(table):
        row = rows.setdefault(tuple(record[k] for k in keys), {**record, CELLS: {}})
        name = record[names] if isinstance(names, str) else tuple(record[k] for k in names)
        row[CELLS][name] = record
    return list(rows.values())


def at(name: Hashable, field: Field) -> Field:
    """A column of crossed rows: it shows the record of that name, or a dash without one."""
    return Field(
        field.column, lambda row: field.cell(row[CELLS][name]) if name in row[CELLS] else None
    )


def field(title: str, cell: Callable[[Row], Any], form: Format | None = None) -> Field:
    """A column that a function computes from the row: text, or numbers in a format."""
    return Field(Column(title, form), cell)


def text(title: str, name: str = "", label: Callable[[Any], str] = str) -> Field:
    """A column of text: the values of the column ``name`` (the title if empty), or their labels."""
    name = name or title
    return field(title, lambda row: None if pd.isna(row[name]) else label(row[name]))


def fields_of(table: Table, *names: str) -> list[Field]:
    """Columns of a table as they are declared, with its titles and formats.

    Args:
        table: the declaration.
        names: of its columns; ``[name]`` is the interval of the estimate ``name``.
    """
    return [_field_of(table, name) for name in names]


def _field_of(table: Table, name: str) -> Field:
    if name.startswith("["):
        at = table.names.index(name[1:-1])
        low, high = table.names[at + 1 : at + 3]
        return interval("interval", low, high, table[low].format)
    column = table[name]
    if column.kind is str:
        return text(column.heading, name)
    if column.kind is bool:
        return yes_no(column.heading, name)
    if column.role == "count":
        return count(column.heading, name)
    return number(column.heading, name, column.format)


def yes_no(title: str, name: str) -> Field:
    """A column of truth values."""
    return text(title, name, lambda value: "yes" if value else "no")


def number(title: str, name: str, form: Format = DECIMALS) -> Field:
    """A column of numbers."""
    return field(title, lambda row: row[name], form)


def count(title: str, name: str = "", diverged: str = "") -> Field:
    """A column of counts, which are 0 if missing; with the number of those that diverged."""
    name = name or title

    def cell(row: Row) -> Cell:
        n = 0 if pd.isna(row[name]) else int(row[name])
        lost = int(row[diverged]) if diverged else 0
        return Quantity(n, note=f", {lost} diverged") if lost else n

    return field(title, cell, INTEGER)


def interval(title: str, low: str = "low", high: str = "high", form: Format = DECIMALS) -> Field:
    """A column of intervals: ``[low, high]``, or a dash where there is none."""

    def cell(row: Row) -> Cell:
        return None if pd.isna(row[low]) else Quantity(None, row[low], row[high])

    return field(title, cell, form)


def estimate(
    title: str,
    value: str = "mean",
    low: str = "low",
    high: str = "high",
    form: Format = DECIMALS,
) -> Field:
    """A column of estimates with their intervals, if known: ``1.900 [1.850, 1.950]``."""

    def cell(row: Row) -> Cell:
        return row[value] if pd.isna(row[low]) else Quantity(row[value], row[low], row[high])

    return field(title, cell, form)


def setting(title: str, name: str = "rate", at_edge: str = "at_edge") -> Field:
    """A column of tuned settings; each is marked if the best may lie beyond those tried."""
    return field(title, lambda row: setting_cell(row[name], row[at_edge]), GENERAL)


def setting_cell(value: float, at_edge: bool) -> Cell:
    """A tuned setting, with a mark if it is the least or greatest one tried."""
    return Quantity(value, note=" (end of the range)") if at_edge else value
