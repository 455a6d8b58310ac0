"""The models that a contrast names, as rows of its table."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from normscope.ledger.comparison import EVERY, GREATEST, OTHERS, At, Cells
from normscope.ledger.vocabulary import Value, Vocabulary


def objects(table: pd.DataFrame) -> pd.DataFrame:
    """The table with Python objects as cells, and NaN wherever a value is missing."""
    return table.astype(object).where(table.notna(), math.nan).reset_index(drop=True)


def diverged(rows: pd.DataFrame) -> pd.Series:
    """Which models diverged, by the column ``diverged`` or ``diverged_at`` (a step, or NaN)."""
    lost = pd.Series(False, index=rows.index)
    if "diverged" in rows:
        lost |= rows["diverged"].astype(bool)
    if "diverged_at" in rows:
        lost |= rows["diverged_at"].notna()
    return lost


def select(rows: pd.DataFrame, cells: Mapping[str, Any], vocabulary: Vocabulary) -> pd.DataFrame:
    """The rows of the cells, in the order of the cells. A reserved word leaves its column open."""
    closed = {k: v for k, v in cells.items() if v not in (OTHERS, GREATEST, EVERY)}
    parts = []
    for cell in vocabulary.cells(closed):
        chosen = pd.Series(True, index=rows.index)
        for column, value in cell.items():
            chosen &= rows[column] == value
        parts.append(rows[chosen])
    return pd.concat(parts) if parts else rows.head(0)


def other_sides(
    cells: Cells, changes: Cells, rows: pd.DataFrame, vocabulary: Vocabulary
) -> Iterator[tuple[dict[str, Value], Cells]]:
    """The cells of the second side: one for each value that ``changes`` lists, with that value."""
    for column, given in changes.items():
        if isinstance(given, list) or given == OTHERS:
            values = given if isinstance(given, list) else _others(column, cells, rows, vocabulary)
            for value in values:
                yield {column: value}, {**cells, **changes, column: value}
            return
    yield {}, {**cells, **changes}


def _others(column: str, cells: Cells, rows: pd.DataFrame, vocabulary: Vocabulary) -> list[Value]:
    """The values of a column in rows that agree with the cells in all other columns."""
    excluded = [cell.get(column) for cell in vocabulary.cells({column: cells.get(column)})]
    values = select(rows, {**cells, column: EVERY}, vocabulary)[column].unique()
    return [value for value in values if value not in excluded]


def grouped(rows: pd.DataFrame, columns: Sequence[str]) -> dict[tuple, pd.DataFrame]:
    """The rows by their values of some columns, in the order of the rows."""
    if not columns:
        return {(): rows}
    return dict(iter(rows.groupby(list(columns), sort=False, dropna=False)))


def common(at: At, sides: Sequence[pd.DataFrame]) -> Value | None:
    """The value that ``at`` picks among those that all sides have; None if there is none."""
    values = set.intersection(*(set(side[at.column]) for side in sides))
    allowed = [v for v in values if at.at_least is None or v >= at.at_least]
    pick = max if at.pick == "greatest" else min
    return pick(allowed, default=None)


def greatest(rows: pd.DataFrame, column: str, other: pd.DataFrame) -> pd.DataFrame:
    """The rows with the greatest value of a column that the other side does not have."""
    remaining = rows[~rows[column].isin(other[column])]
    return remaining[remaining[column] == remaining[column].max()]
