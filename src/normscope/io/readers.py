"""Reading the workflow's tables."""

from collections.abc import Iterator, Mapping, Sequence
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
