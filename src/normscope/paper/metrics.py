"""The registry of metrics, ``metrics.yaml`` of each study: single numbers that DVC shows.

No study is known here. Names last as long as what they name: a cell has that of the values of its
keys, whatever else a run has. DVC joins and splits names at dots, so that none has one. The
workflow reads this module for every job: no pandas.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from normscope.errors import Explained
from normscope.paper.registry import Entry, Table, Text, listed, read
from normscope.schema import Distinct, Some

Row = Mapping[Any, Any]
FILE = "metrics.yaml"
LEDGER = "verdicts"  # what the ledger's numbers are called


class Metric(Entry):
    """A column of a table, by the keys that tell its rows apart."""

    table: Text
    keys: Annotated[list[Text], Some, Distinct] = Field(
        description="columns whose values name a cell"
    )
    value: Text = Field(description="column of the numbers")
    along: Text | None = Field(
        default=None,
        description="column that the numbers run along: a curve a cell, mean of what stands at "
        "the same place, and no single number",
    )

    @property
    def source(self) -> Table:
        """Where its numbers stand."""
        return Table(self.study, self.table)


def load(folder: Path, studies: Iterable[str]) -> dict[str, Metric]:
    """The metrics of the studies by name.

    Args:
        folder: of the studies.
        studies: their names.

    Raises:
        Explained: an entry is invalid, or its name is taken.
    """
    return read(folder, FILE, studies, Metric)


def check(
    folder: Path, metrics: Mapping[str, Metric], tables: Mapping[str, Collection[str]]
) -> None:
    """Whether the tables of the entries are there.

    Args:
        folder: of the studies.
        metrics: their entries.
        tables: names of every study's tables.

    Raises:
        Explained: a table is not there, or a name is the ledger's; names every entry, with the
            nearest right word.
    """
    problems = [
        f"{metric.study}/{FILE}: {name}.{problem}"
        for name, metric in metrics.items()
        for problem in metric.source.problems(tables)
    ]
    if LEDGER in metrics:
        problems.append(f"{LEDGER}: the ledger's numbers have this name; take another one")
    if problems:
        raise Explained(listed(folder, problems))


def cells(name: str, metric: Metric, rows: Sequence[Row]) -> dict[tuple[str, ...], float]:
    """The number of every cell that has one, by the words of its keys.

    Raises:
        Explained: the table lacks a column, or has no numbers in it; two rows have the same keys,
            or keys that DVC cannot tell apart.
    """
    numbers: dict[tuple[str, ...], float] = {}
    for row in _known(name, metric, rows):
        cell = _cell(metric, row)
        if cell in numbers:
            raise Explained(
                f"metric {name}: {metric.study}.{metric.table} has several rows of"
                f" {', '.join(cell)}, as DVC writes it; name the column that tells them apart in"
                " its keys"
            )
        numbers[cell] = row[metric.value]
    return numbers


def curves(
    name: str, metric: Metric, rows: Sequence[Row]
) -> dict[tuple[str, ...], list[dict[str, float]]]:
    """The curve of every cell: a row a place, of which each number is the mean.

    Raises:
        Explained: the table lacks a column, or has no numbers in it; two cells have one name.
    """
    names: dict[str, list[Any]] = {}
    places: dict[tuple[str, ...], dict[float, list[float]]] = {}
    for row in _known(name, metric, rows):
        cell = _cell(metric, row)
        keys = names.setdefault("-".join(cell), [row[key] for key in metric.keys])
        if keys != [row[key] for key in metric.keys]:
            raise Explained(
                f"metric {name}: two cells of {metric.study}.{metric.table} are both called"
                f" {'-'.join(cell)}, as DVC writes it; change its keys"
            )
        curve = places.setdefault(cell, {})
        curve.setdefault(row[metric.along], []).append(row[metric.value])
    return {
        cell: [
            {str(metric.along): place, metric.value: math.fsum(values) / len(values)}
            for place, values in sorted(curve.items())
        ]
        for cell, curve in places.items()
    }


def nested(cells: Mapping[tuple[str, ...], float]) -> dict[str, Any]:
    """Cells as DVC joins their names: a level a key."""
    tree: dict[str, Any] = {}
    for (*path, last), value in cells.items():
        node = tree
        for key in path:
            node = node.setdefault(key, {})
        node[last] = value
    return tree


def _known(name: str, metric: Metric, rows: Sequence[Row]) -> Iterator[Row]:
    """Rows with a number."""
    columns = [*metric.keys, metric.value, *filter(None, [metric.along])]
    for row in rows:
        if missing := [column for column in columns if column not in row]:
            raise Explained(
                f"metric {name}: {metric.study}.{metric.table} has no column"
                f" {', '.join(missing)}; it has {', '.join(row)}"
            )
        numbers = [row[column] for column in columns[len(metric.keys) :]]
        if text := [number for number in numbers if not isinstance(number, int | float)]:
            raise Explained(
                f"metric {name}: {metric.study}.{metric.table} has {text[0]!r} where a number is"
                " needed; name a column of numbers"
            )
        if all(map(math.isfinite, numbers)):
            yield row


def _cell(metric: Metric, row: Row) -> tuple[str, ...]:
    """The words of a row's keys, without what DVC splits names at."""
    values = (row[key] for key in metric.keys)
    words = (f"{v:g}" if isinstance(v, float) else str(v) for v in values)
    return tuple(re.sub(r"[^\w-]+", "_", word) for word in words)
