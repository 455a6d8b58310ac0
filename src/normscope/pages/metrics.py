"""Metrics of DVC: single numbers and curves, as the columns of the tables declare.

The name of a number consists of the values of its keys only, so that it is the same in every run.
DVC joins and splits names at dots, so no name has one.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from normscope.columns import Column, Metric, Table
from normscope.errors import Explained

Row = Mapping[Any, Any]
Cell = tuple[str, ...]
LEDGER = "verdicts"  # name of the ledger's numbers


@dataclass(frozen=True)
class Shown:
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

    @property
    def where(self) -> str:
        """The metric and its table, for errors."""
        return f"metric {self.metric.name}: {self.study}.{self.table}"


def shown(studies: Mapping[str, Mapping[str, Table]]) -> dict[str, Shown]:
    """The columns of all studies that DVC shows, by the name of the metric.

    Args:
        studies: the declared tables of every study.

    Raises:
        ValueError: two metrics have the same name.
    """
    metrics: dict[str, Shown] = {}
    for study, tables in studies.items():
        for name, table in tables.items():
            for column in table.columns:
                if (metric := column.metric) is None:
                    continue
                if metric.name in (LEDGER, *metrics):
                    raise ValueError(f"two metrics are called {metric.name}")
                keys = metric.keys or table.keys
                metrics[metric.name] = Shown(study, name, column, keys, metric)
    return metrics


def cells(shown: Shown, rows: Iterable[Row]) -> dict[Cell, float]:
    """The finite numbers of a column, by the values of their keys.

    Raises:
        Explained: two rows have keys that DVC cannot tell apart.
    """
    numbers: dict[Cell, float] = {}
    for cell, row in _finite(shown, rows):
        if cell in numbers:
            raise Explained(f"{shown.where} has several rows of {', '.join(cell)} for DVC")
        numbers[cell] = row[shown.column.name]
    return numbers


def curves(shown: Shown, rows: Iterable[Row]) -> dict[Cell, list[dict[str, float]]]:
    """The curves of a column: one row per place, with the mean of the numbers there.

    Raises:
        Explained: two curves would have the same file name.
    """
    along, value = shown.metric.along, shown.column.name
    names: dict[str, Cell] = {}
    places: dict[Cell, dict[float, list[float]]] = {}
    for cell, row in _finite(shown, rows):
        if names.setdefault("-".join(cell), cell) != cell:
            raise Explained(f"{shown.where} has two curves called {'-'.join(cell)} for DVC")
        places.setdefault(cell, {}).setdefault(row[along], []).append(row[value])
    return {
        cell: [
            {along: place, value: math.fsum(values) / len(values)}
            for place, values in sorted(curve.items())
        ]
        for cell, curve in places.items()
    }


def nested(cells: Mapping[Cell, float]) -> dict[str, Any]:
    """Numbers as DVC joins their names: one level per key."""
    tree: dict[str, Any] = {}
    for (*path, last), value in cells.items():
        node = tree
        for key in path:
            node = node.setdefault(key, {})
        node[last] = value
    return tree


def _finite(shown: Shown, rows: Iterable[Row]) -> Iterator[tuple[Cell, Row]]:
    """The rows with finite numbers, and their keys without the characters at which DVC splits."""
    columns = [shown.column.name, *filter(None, [shown.metric.along])]
    for row in rows:
        if all(math.isfinite(row[column]) for column in columns):
            values = (row[key] for key in shown.keys)
            words = (f"{v:g}" if isinstance(v, float) else str(v) for v in values)
            yield tuple(re.sub(r"[^\w-]+", "_", word) for word in words), row
