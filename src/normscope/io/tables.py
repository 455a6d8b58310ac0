"""The tables of a study: collected from the files of its jobs, checked, written, and read."""

import numbers
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from normscope.columns import Column, Table
from normscope.errors import Explained
from normscope.io.csvfile import write_csv

ROUNDING = 1e-4  # of a cosine over all parameters in single precision


def collect(
    folder: Path,
    file: str,
    keys: Mapping[str, Mapping[str, Any]],
    read: Callable[[Path], pd.DataFrame] = pd.read_csv,
) -> pd.DataFrame:
    """Concatenate the tables of all jobs, with the keys of each job as first columns.

    Args:
        folder: with one folder per job.
        keys: columns and their values, by name of the job.
    """
    parts = [read(folder / name / file).assign(**key) for name, key in keys.items()]
    if not parts:
        return pd.DataFrame()
    # an empty table would turn numbers into objects
    table = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    first = list(next(iter(keys.values())))
    return table[first + [column for column in table if column not in first]]


def check(name: str, frame: pd.DataFrame, table: Table) -> None:
    """Compare a table with its declaration.

    Raises:
        Explained: a column is missing or not declared, a value has the wrong kind or lies outside
            the declared range, or two rows have the same keys.
    """
    problems = [*_differing_columns(frame, table)]
    if not problems:
        problems = [p for column in table.columns for p in _wrong_values(frame, column)]
    if not problems and table.keys and not table.repeats and frame.duplicated(table.keys).any():
        first = frame[frame.duplicated(table.keys)].iloc[0]
        keys = ", ".join(f"{key} {first[key]}" for key in table.keys)
        problems = [f"several rows have {keys}"]
    if problems:
        raise Explained(f"{name}.csv does not fit its declaration: {'; '.join(problems)}")


def _differing_columns(frame: pd.DataFrame, table: Table) -> Iterator[str]:
    present = list(frame)
    if missing := [column for column in table.names if column not in present]:
        yield f"it lacks {', '.join(missing)}"
    if unknown := [str(column) for column in present if column not in table.names]:
        yield f"{', '.join(unknown)} not declared"


def _wrong_values(frame: pd.DataFrame, column: Column) -> Iterator[str]:
    values = frame[column.name].dropna()
    if column.role == "key" and column.kind is not str and len(values) < len(frame):
        yield f"{column.name} is missing in a row"
    kinds = {str: str, bool: bool, int: numbers.Real, float: numbers.Real}
    objects = values.tolist()
    if wrong := [v for v in objects if not isinstance(v, kinds[column.kind])]:
        yield f"{column.name} has {wrong[0]!r}, which is not {column.kind.__name__}"
    elif column.kind is int and (wrong := [v for v in objects if v != int(v)]):
        yield f"{column.name} has {wrong[0]!r}, which is not a whole number"
    elif column.range and (wrong := [v for v in objects if not _is_within(v, *column.range)]):
        yield f"{column.name} has {wrong[0]!r}, which is outside {list(column.range)}"


def _is_within(value: float, low: float, high: float) -> bool:
    """Whether a value is in a range, up to rounding."""
    return low - ROUNDING <= value <= high + ROUNDING


def as_declared(
    tables: Mapping[str, pd.DataFrame], declared: Mapping[str, Table]
) -> dict[str, pd.DataFrame]:
    """Check a study's tables against their declarations, and put the columns in declared order.

    Raises:
        Explained: a table does not fit its declaration, or is not declared.
    """
    if tables.keys() != declared.keys():
        names = ", ".join(sorted(tables.keys() ^ declared.keys()))
        raise Explained(f"made, or declared in tables.py, but not both: {names}")
    for name, table in tables.items():
        check(name, table, declared[name])
    return {name: table[declared[name].names] for name, table in tables.items()}


def write_tables(folder: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write ``<name>.csv`` of every table."""
    for name, table in tables.items():
        write_csv(folder / f"{name}.csv", table)


def read_table(path: Path, table: Table) -> pd.DataFrame:
    """Read a declared table: text remains text, even if it is ``NA`` or a number.

    Raises:
        Explained: the file does not fit the declaration; make the table again.
    """
    texts: dict[str, type] = {c.name: str for c in table.columns if c.kind is str}
    frame = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=[""])
    check(path.stem, frame, table)
    return frame


class Tables(Mapping[str, pd.DataFrame]):
    """The tables of a study by name. Each is read at its first use."""

    def __init__(self, folder: Path, declared: Mapping[str, Table]) -> None:
        self._folder, self._declared = folder, declared
        self._read: dict[str, pd.DataFrame | None] = dict.fromkeys(declared)

    def __getitem__(self, name: str) -> pd.DataFrame:
        table = self._read[name]
        if table is None:
            path = self._folder / f"{name}.csv"
            table = self._read[name] = read_table(path, self._declared[name])
        return table

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)
