"""The tables of a study: made from the files of its jobs, written, and read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from normscope.io.csvfile import write_csv


def collect(
    folder: Path,
    file: str,
    keys: Mapping[str, Mapping[str, Any]],
    read: Callable[[Path], pd.DataFrame] = pd.read_csv,
) -> pd.DataFrame:
    """A table of every job, one below the other, with what tells the jobs apart in front.

    Args:
        folder: with a folder a job.
        file: the table in each of these.
        keys: columns and their values, by the name of the job.
        read: how one is read.
    """
    parts = [read(folder / name / file).assign(**key) for name, key in keys.items()]
    if not parts:
        return pd.DataFrame()
    # an empty one would turn numbers into objects
    table = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    first = list(next(iter(keys.values())))
    return table[first + [column for column in table if column not in first]]


def write_tables(folder: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write ``<name>.csv`` of every table."""
    for name, table in tables.items():
        write_csv(folder / f"{name}.csv", table)


class Tables(Mapping[str, pd.DataFrame]):
    """The tables of a study by their names, each read when it is asked for.

    Args:
        folder: with ``<name>.csv``.
        names: which there are.
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder = folder
        self._read: dict[str, pd.DataFrame | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> pd.DataFrame:
        table = self._read[name]
        if table is None:
            table = self._read[name] = pd.read_csv(self._folder / f"{name}.csv")
        return table

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)
