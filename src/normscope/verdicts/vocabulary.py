"""The values that statements about a study may use, from its configuration. Needs no pandas."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from normscope.columns import Table
from normscope.errors import Explained, suggest
from normscope.verdicts.comparison import Value

Cell = Mapping[str, Value]


@dataclass(frozen=True)
class Vocabulary:
    """The values that statements about a study may use.

    Args:
        values: The values of a column, if they can be listed, such as the arms of the registry. A
            listed value that was not trained is not an error; the statement then has no data.
        names: Names for cells that the configuration determines. With
            ``{"protocol": {"corrected": [{"task": "recall", "learning_rate": 0.001}]}}`` a
            statement may say ``protocol: corrected``. Names take precedence over values.
    """

    values: Mapping[str, Collection[Any]] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, Sequence[Cell]]] = field(default_factory=dict)

    def cells(self, models: Mapping[str, Any]) -> list[Cell]:
        """The single cells of a statement, with names resolved, in the order of its lists."""
        known: list[Cell] = [{}]
        for column, of_column in models.items():
            values = of_column if isinstance(of_column, list) else [of_column]
            names = self.names.get(column, {})
            parts = [part for v in values for part in names.get(str(v), [{column: v}])]
            known = [{**a, **b} for a in known for b in parts if agree(a, b)]
        return known

    def side(self, words: str, table: Table) -> dict[str, Value]:
        """The columns and values that one side of a comparison names.

        Raises:
            Explained: A word is no known value, or that of several columns.
        """
        return dict(self._word(word, table) for word in words.split())

    def values_of(self, column: str) -> list[Any]:
        """The values and names of a column; none if they cannot be listed."""
        return [*self.names.get(column, ()), *self.values.get(column, ())]

    def _word(self, word: str, table: Table) -> tuple[str, Value]:
        column, equals, text = word.partition("=")
        if equals:
            kind = table[column].kind if column in table.names else str
            return column, _parse_value(text, kind)
        columns = [name for name in {*table.names, *self.names} if word in self.values_of(name)]
        if len(columns) == 1:
            return columns[0], word
        if columns:
            examples = " or ".join(f"{name}={word}" for name in sorted(columns))
            raise Explained(f"compare: {word} is a value of several columns: give {examples}")
        values = [str(v) for name in table.names for v in self.values_of(name)]
        raise Explained(f"compare: no column has the value {word!r}; {suggest(word, values)}")


def _parse_value(text: str, kind: type) -> Value:
    try:
        return {"true": True, "false": False}[text] if kind is bool else kind(text)
    except (ValueError, KeyError):
        raise Explained(f"compare: {text!r} is not {kind.__name__}") from None


def agree(one: Cell, other: Cell) -> bool:
    """Whether two cells have equal values in the columns that both have."""
    return all(one.get(column, value) == value for column, value in other.items())
