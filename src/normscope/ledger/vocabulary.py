"""What a study offers to statements about it: tables, values of columns, names of cells. No pandas.

A study's configuration gives it, so that a statement is checked before any job starts.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Value = str | bool | int | float
Cell = Mapping[str, Value]
SHARE = (0.0, 1.0)  # ranges of columns
COSINE = (-1.0, 1.0)


@dataclass(frozen=True)
class Vocabulary:
    """The words that a statement may use of a study.

    Args:
        columns: of every table that a statement may read, by the table's name.
        values: that a column can have, where these can be listed: an arm of the registry, a
            placement. A value that is legal and was not trained is no error: it is no data.
        names: cells that the configuration decides, by a name for them: in
            ``{"protocol": {"corrected": [{"task": "recall", "learning_rate": 0.001}]}}`` the
            statement says ``protocol: corrected``. A name goes before a value of a column.
        texts: columns of text whose values cannot be listed. The other columns are numbers, unless
            their values are listed and are text.
        ranges: least and greatest value of columns that have them, such as an accuracy.
        grids: the rows of tables that the configuration determines, by the table's name: the
            columns that name a model, and seed. Measures that a row lacks are NaN; others are
            taken as known. A table whose rows depend on results has no grid.
        labels: how a case calls a column's value: words by value, or a format string. An empty
            label leaves the value out.
    """

    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    values: Mapping[str, Collection[Any]] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, Sequence[Cell]]] = field(default_factory=dict)
    texts: Collection[str] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    grids: Mapping[str, Sequence[Cell]] = field(default_factory=dict)
    labels: Mapping[str, Mapping[Any, str] | str] = field(default_factory=dict)

    def is_number(self, column: str) -> bool:
        """Whether a column has numbers, or truth values, which count as 0 and 1."""
        return column not in self.texts and not any(
            isinstance(value, str) for value in self.values.get(column, ())
        )

    def cells(self, given: Mapping[str, Any]) -> list[Cell]:
        """The cells of a statement one by one, names resolved, in the order of the lists."""
        known: list[Cell] = [{}]
        for column, of_column in given.items():
            values = of_column if isinstance(of_column, list) else [of_column]
            names = self.names.get(column, {})
            parts = [part for v in values for part in names.get(str(v), [{column: v}])]
            known = [{**a, **b} for a in known for b in parts if agree(a, b)]
        return known

    def label(self, column: str, value: Value | None) -> str:
        """How a case calls a value: ``pre-norm``, ``12 blocks``."""
        words = self.labels.get(column, {})
        return words.format(value) if isinstance(words, str) else words.get(value, str(value))


def planned(models: Iterable[tuple[Any, int]], columns: Sequence[str]) -> list[Cell]:
    """A grid: one row for each combination of a seed and these columns of its cell."""
    keys = dict.fromkeys((*(getattr(cell, c) for c in columns), seed) for cell, seed in models)
    return [dict(zip((*columns, "seed"), key, strict=True)) for key in keys]


def agree(one: Cell, other: Cell) -> bool:
    """Whether no column has one value in one cell and another value in the other cell."""
    return all(one.get(column, value) == value for column, value in other.items())
