"""Reading the workflow's tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd


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


def tables_in(directory: Path, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Tables of a directory by their names."""
    return {name: pd.read_csv(directory / f"{name}.csv") for name in names}


def tables_of(results: Path, studies: Iterable[str]) -> dict[str, pd.DataFrame]:
    """All tables of studies, ``results/<study>/tables/<table>.csv``, by ``study.table``."""
    return {
        f"{study}.{path.stem}": pd.read_csv(path)
        for study in studies
        for path in sorted((results / study / "tables").glob("*.csv"))
    }
