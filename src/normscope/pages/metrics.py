"""Metrics of DVC: single numbers and curves, as the columns of the tables declare.

The name of a number consists of the values of its keys only, so that it is the same in every run.
DVC joins and splits names at dots, so no name has one.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normscope.columns import Column, Metric, Table
from normscope.errors import Explained

if TYPE_CHECKING:
    import pandas as pd

LEDGER = "verdicts"  # name of the ledger's numbers


@dataclass(frozen=True)
class ShownColumn:
    """A column that DVC shows.

    Args:
        study, table: the table of the column.
        column: the column.
        keys: columns that identify a number.
        metric: how DVC shows it.
    """

    study: str
    table: str
    column: Column
    keys: Sequence[str]
    metric: Metric


def shown_columns(studies: Mapping[str, Mapping[str, Table]]) -> dict[str, ShownColumn]:
    """The columns of all studies that DVC shows, by the name of the metric.

    Args:
        studies: the declared tables of every study.

    Raises:
        ValueError: two metrics have the same name.
    """
    metrics: dict[str, ShownColumn] = {}
    for study, tables in studies.items():
        for name, table in tables.items():
            for column in table.columns:
                if (metric := column.metric) is None:
                    continue
                if metric.name in (LEDGER, *metrics):
                    raise ValueError(f"two metrics are called {metric.name}")
                keys = metric.keys or table.keys
                metrics[metric.name] = ShownColumn(study, name, column, keys, metric)
    return metrics


def plot(shown: ShownColumn, table: "pd.DataFrame") -> "pd.DataFrame":
    """The finite numbers of a column, as DVC draws them.

    Args:
        shown: the column.
        table: its table.

    Returns:
        Columns ``cell``, the values of the keys in words; the place, if these are curves, with the
        mean of the numbers there; and the number, which has the name of the metric.

    Raises:
        Explained: two rows have keys that DVC cannot tell apart.
    """
    place = [*filter(None, [shown.metric.along])]
    columns = [*place, shown.column.name]
    finite = table[table[columns].map(math.isfinite).all(axis=1)]
    cells = [" ".join(map(_word, row)) for row in finite[[*shown.keys]].itertuples(index=False)]
    numbers = finite[columns].set_axis([*place, shown.metric.name], axis="columns")
    numbers.insert(0, "cell", cells)
    if place:
        return numbers.groupby(["cell", *place], as_index=False).mean()
    if (twice := numbers["cell"].duplicated()).any():
        cell = numbers["cell"][twice].iloc[0]
        raise Explained(
            f"metric {shown.metric.name}: {shown.study}.{shown.table} has several rows of {cell} "
            "for DVC"
        )
    return numbers


def _word(key: Any) -> str:
    """A key without the characters at which DVC splits names."""
    return re.sub(r"[^\w-]+", "_", f"{key:g}" if isinstance(key, float) else str(key))


def tree_of(plot: "pd.DataFrame") -> dict[str, Any]:
    """The numbers of a plot as DVC joins their names: one level per key."""
    tree: dict[str, Any] = {}
    for cell, value in plot.itertuples(index=False):
        *path, last = cell.split()
        node = tree
        for key in path:
            node = node.setdefault(key, {})
        node[last] = value
    return tree
