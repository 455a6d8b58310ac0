"""Declared tables: what a row of each table is, and what its columns mean.

A study declares its tables once, in ``studies/<study>/tables.py``. Everything else that concerns a
column reads its declaration: the check of the CSV file when it is written and read, the names that
statements may use, the tables of the page, the metrics of DVC, the reference page, and the link to
the code that computes it. The workflow imports this module at every start, so it imports no pandas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from normscope.formats import GENERAL, INTEGER, SIGNIFICANT, Format, decimals

Role = Literal["key", "measure", "estimate", "low", "high", "p-value", "count", "note"]
Range = tuple[float, float]
SHARE: Range = (0.0, 1.0)
COSINE: Range = (-1.0, 1.0)
NATS: dict[str, Any] = {"unit": "nats", "format": decimals()}


@dataclass(frozen=True)
class Metric:
    """A column that ``dvc metrics`` and ``dvc plots`` show, one number per combination of the keys.

    Args:
        name: which DVC calls it by.
        keys: columns that identify a number; all keys of the table if empty.
        along: column that a curve runs along. A curve is a plot and no single number; it is the
            mean over the rows that agree in ``keys``.
    """

    name: str
    keys: Sequence[str] = ()
    along: str = ""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        name: in the CSV file and in statements.
        meaning: what it holds, as a phrase.
        kind: ``float``, ``int``, ``bool`` or ``str``. Values other than keys may be missing.
        role: ``key`` columns identify a row; ``low`` and ``high`` are the ends of the interval of
            an ``estimate``.
        unit: of a number, such as ``nats``; ``times`` of a factor, whose logarithms are averaged.
        format: how a page prints a number.
        title: heading of the column on a page; its name if empty.
        range: least and greatest possible value.
        label: how a statement names one of its values: words by value, or a format string.
        source: dotted name of the function that computes it; the table's if empty.
        metric: how DVC shows it, if it does.
    """

    name: str
    meaning: str
    kind: type = float
    role: Role = "measure"
    unit: str = ""
    format: Format = SIGNIFICANT
    title: str = ""
    range: Range | None = None
    label: Mapping[Any, str] | str = ""
    source: str = ""
    metric: Metric | None = None

    @property
    def heading(self) -> str:
        """What stands above the column on a page."""
        return self.title or self.name

    def but(self, **changes: Any) -> "Column":
        """The column with other fields."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Table:
    """A table of a study, ``results/<study>/tables/<name>.csv``.

    Args:
        rows: what one row is, as a phrase: "one trained model".
        columns: in the order of the file.
        source: dotted name of the function that computes the table.
        repeats: whether several rows may have the same keys.
        learned: check that models pass which learned something, such as ``accuracy >= 0.9``;
            statements compare no models that fail it.
        title: heading on the page of a study without ``pages.py``, which shows no other tables.
    """

    rows: str
    columns: tuple[Column, ...]
    source: str
    repeats: bool = False
    learned: str = ""
    title: str = ""

    def __getitem__(self, name: str) -> Column:
        return self.by_name[name]

    @property
    def by_name(self) -> dict[str, Column]:
        """The columns by name."""
        return {column.name: column for column in self.columns}

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def keys(self) -> list[str]:
        """Names of the columns that identify a row; none in a table without such columns."""
        return [column.name for column in self.columns if column.role == "key"]

    def source_of(self, column: str) -> str:
        """Dotted name of the function that computes a column."""
        return self[column].source or self.source


def key(name: str, meaning: str, kind: type = str, **fields: Any) -> Column:
    """A column that identifies a row. Numbers among keys are settings or counts."""
    form = INTEGER if kind is int else GENERAL
    return Column(name, meaning, kind, "key", **{"format": form, **fields})


def text(name: str, meaning: str, **fields: Any) -> Column:
    """A column of text."""
    return Column(name, meaning, str, "note", **fields)


def flag(name: str, meaning: str, **fields: Any) -> Column:
    """A column of truth values."""
    return Column(name, meaning, bool, "note", **fields)


def count(name: str, meaning: str, **fields: Any) -> Column:
    """A column of whole numbers."""
    return Column(name, meaning, int, "count", **{"format": INTEGER, **fields})


def p_value(name: str, meaning: str, **fields: Any) -> Column:
    """A column of p-values."""
    return Column(
        name, meaning, float, "p-value", **{"range": SHARE, "format": decimals(), **fields}
    )


def estimate(
    name: str, meaning: str, low: str = "", high: str = "", **fields: Any
) -> tuple[Column, Column, Column]:
    """An estimate with the two ends of its interval, in ``<name>_low`` and ``<name>_high``.

    Args:
        low, high: other names of the ends.
        fields: of the estimate; the ends share unit, format and range.
    """
    center = Column(name, meaning, float, "estimate", **fields)
    ends: dict[str, Any] = {k: getattr(center, k) for k in ("unit", "format", "range", "source")}
    return (
        center,
        Column(low or f"{name}_low", f"lower end of the interval of {name}", role="low", **ends),
        Column(high or f"{name}_high", f"upper end of the interval of {name}", role="high", **ends),
    )


def many(meanings: Mapping[str, str], **fields: Any) -> tuple[Column, ...]:
    """Columns of numbers that share all fields but name and meaning."""
    return tuple(Column(name, meaning, **fields) for name, meaning in meanings.items())
