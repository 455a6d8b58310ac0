"""The names that statements about a study may use: tables, columns, values and cells.

It follows from the configuration, so that statements are checked before any job starts. Needs no
pandas.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Value = str | bool | int | float
Cell = Mapping[str, Value]
SHARE = (0.0, 1.0)  # ranges of columns
COSINE = (-1.0, 1.0)


class Extent(NamedTuple):
    """The size, training and text of models.

    Args:
        blocks: The number of blocks.
        d: The width.
        steps: Optimizer steps; 0 at initialization.
        text: The name of the text, or of what stands for one.
    """

    blocks: int
    d: int
    steps: int
    text: str

    @property
    def size(self) -> tuple[int, int]:
        """What extents are ordered by: about a twelfth of the blocks' weights, then the steps."""
        return self.blocks * self.d**2, self.steps


@dataclass(frozen=True)
class Vocabulary:
    """The names that statements about a study may use.

    Args:
        columns: The columns of every table that a statement may read, by table.
        values: The values of a column, if they can be listed, such as the arms of the registry. A
            listed value that was not trained is not an error; the statement then has no data.
        names: Names for cells that the configuration determines. With
            ``{"protocol": {"corrected": [{"task": "recall", "learning_rate": 0.001}]}}`` a
            statement may say ``protocol: corrected``. Names take precedence over values.
        texts: Text columns whose values cannot be listed. Other columns are numbers, unless their
            values are listed and are text.
        ranges: The smallest and largest value of a column, such as those of an accuracy.
        grids: The rows of tables that the configuration determines, by table: the columns that
            identify a model, and the seed. A measure that a row lacks is NaN. A table whose rows
            depend on results has no grid.
        labels: The words for a column's value in the name of a case: by value, or as a format
            string. With an empty label, the value is left out.
        extents: The extents of the models of each table, with the values of columns by which its
            rows are recognized. Statements about other tables have no reach.
        sized: The columns that tell models of different extents apart, and nothing else.
    """

    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    values: Mapping[str, Collection[Any]] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, Sequence[Cell]]] = field(default_factory=dict)
    texts: Collection[str] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    grids: Mapping[str, Sequence[Cell]] = field(default_factory=dict)
    labels: Mapping[str, Mapping[Any, str] | str] = field(default_factory=dict)
    extents: Mapping[str, Sequence[tuple[Cell, Extent]]] = field(default_factory=dict)
    sized: Collection[str] = ()

    def is_number(self, column: str) -> bool:
        """Whether a column has numbers or truth values, which count as 0 and 1."""
        return column not in self.texts and not any(
            isinstance(value, str) for value in self.values.get(column, ())
        )

    def cells(self, given: Mapping[str, Any]) -> list[Cell]:
        """The single cells of a statement, with names resolved, in the order of its lists."""
        known: list[Cell] = [{}]
        for column, of_column in given.items():
            values = of_column if isinstance(of_column, list) else [of_column]
            names = self.names.get(column, {})
            parts = [part for v in values for part in names.get(str(v), [{column: v}])]
            known = [{**a, **b} for a in known for b in parts if agree(a, b)]
        return known

    def label(self, column: str, value: Value | None) -> str:
        """The words for a value in the name of a case: ``pre-norm``, ``12 blocks``."""
        words = self.labels.get(column, {})
        return words.format(value) if isinstance(words, str) else words.get(value, str(value))


def planned(models: Iterable[tuple[Any, int]], columns: Sequence[str]) -> list[Cell]:
    """A grid with one row for each seed and each combination of these columns of a cell."""
    keys = dict.fromkeys((*(getattr(cell, c) for c in columns), seed) for cell, seed in models)
    return [dict(zip((*columns, "seed"), key, strict=True)) for key in keys]


def agree(one: Cell, other: Cell) -> bool:
    """Whether two cells have equal values in the columns that both have."""
    return all(one.get(column, value) == value for column, value in other.items())
