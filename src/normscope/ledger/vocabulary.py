"""What a study offers to statements about it: tables, values of columns, names of cells. No pandas.

A study's configuration gives it, so that a statement is checked before any job starts.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Value = str | bool | int | float
Cell = Mapping[str, Value]


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
        labels: how a case calls a column's value: words by value, or a format string. An empty
            label leaves the value out.
    """

    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    values: Mapping[str, Collection[Any]] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, Sequence[Cell]]] = field(default_factory=dict)
    labels: Mapping[str, Mapping[Any, str] | str] = field(default_factory=dict)

    def label(self, column: str, value: Value) -> str:
        """How a case calls a value: ``pre-norm``, ``12 blocks``."""
        words = self.labels.get(column, {})
        return words.format(value) if isinstance(words, str) else words.get(value, str(value))
