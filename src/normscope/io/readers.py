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
        self.folder, self.names = folder, names
        self.read: dict[str, pd.DataFrame] = {}

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self.names:
            raise KeyError(name)
        if name not in self.read:
            self.read[name] = pd.read_csv(self.folder / f"{name}.csv")
        return self.read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def tables_in(directory: Path, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Tables of a directory by their names."""
    return {name: pd.read_csv(directory / f"{name}.csv") for name in names}
