"""Rows of the cells that a contrast names. Knows the words of data/claims/, and no study."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from normscope.ledger.comparison import EVERY, GREATEST, OTHERS, At, Best, Cells
from normscope.ledger.expression import measure
from normscope.ledger.vocabulary import Value, Vocabulary

if TYPE_CHECKING:  # the start of the workflow reads this module without pandas
    import pandas as pd

Row = Mapping[str, Any]
Rows = list[Row]


def records(table: "pd.DataFrame") -> Rows:
    """The rows of a table, with NaN wherever a value is missing."""
    known = table.astype(object).where(table.notna(), math.nan)
    names = [str(name) for name in known]
    return [dict(zip(names, row, strict=True)) for row in known.itertuples(index=False, name=None)]


def diverged(row: Row) -> bool:
    """Whether a model diverged, by its column ``diverged`` or ``diverged_at`` (a step, or NaN)."""
    step = row.get("diverged_at", math.nan)
    return bool(row.get("diverged", False)) or not math.isnan(step)


def select(rows: Iterable[Row], cells: Mapping[str, Any], vocabulary: Vocabulary) -> Rows:
    """The rows of the cells, in the order of the cells; a word for values leaves a column open."""
    closed = {k: v for k, v in cells.items() if v not in (OTHERS, GREATEST, EVERY)}
    rows = list(rows)
    return [
        row
        for cell in vocabulary.cells(closed)
        for row in rows
        if all(row[column] == value for column, value in cell.items())
    ]


def partners(
    cells: Cells, changes: Cells, rows: Rows, vocabulary: Vocabulary
) -> Iterator[tuple[tuple[str, Value] | None, Cells]]:
    """The cells of the other side: for each value that ``changes`` lists, and that value."""
    for column, given in changes.items():
        if isinstance(given, list) or given == OTHERS:
            values = given if isinstance(given, list) else _others(column, cells, rows, vocabulary)
            for value in values:
                yield (column, value), {**cells, **changes, column: value}
            return
    yield None, {**cells, **changes}


def _others(column: str, cells: Cells, rows: Rows, vocabulary: Vocabulary) -> list[Value]:
    """The values of a column that rows like those of the cells have beside them."""
    own = [cell.get(column) for cell in vocabulary.cells({column: cells.get(column)})]
    every = select(rows, {**cells, column: EVERY}, vocabulary)
    values = dict.fromkeys(row[column] for row in every)
    return [v for v in values if v not in own]


def grouped(rows: Iterable[Row], columns: Sequence[str]) -> dict[tuple, Rows]:
    """Rows by their values of some columns, in the order of the rows; one group of no columns."""
    groups: dict[tuple, Rows] = {} if columns else {(): []}
    for row in rows:
        groups.setdefault(tuple(row[c] for c in columns), []).append(row)
    return groups


def common(at: At, sides: Sequence[Rows]) -> Value | None:
    """The value of ``at`` that is picked of those that all sides have; None where none is left."""
    values = set.intersection(*({row[at.column] for row in side} for side in sides))
    enough = [v for v in values if at.at_least is None or v >= at.at_least]
    pick = max if at.pick == "greatest" else min
    return pick(enough, default=None)


def greatest(rows: Rows, column: str, but: Rows) -> Rows:
    """The rows with the greatest value of a column that those of the other side do not have."""
    values = {row[column] for row in rows} - {row[column] for row in but}
    return [row for row in rows if values and row[column] == max(values)]


def best_of(rows: Rows, best: Best, replicates: str) -> Rows:
    """For every replicate the rows of the setting with the least mean over the other ones.

    A single replicate has no others, and chooses for itself.
    """
    settings = grouped(rows, best.columns)

    def badness(setting: tuple, replicate: Value) -> float:
        own, others = [], []
        for row in settings[setting]:
            (own if row[replicates] == replicate else others).append(measure(best.by, row))
        values = others or own
        total = math.fsum(values) / len(values)
        return math.inf if math.isnan(total) else total

    chosen = []
    for replicate in dict.fromkeys(row[replicates] for row in rows):
        setting = min(settings, key=lambda s, r=replicate: badness(s, r))
        chosen += [row for row in settings[setting] if row[replicates] == replicate]
    return chosen
