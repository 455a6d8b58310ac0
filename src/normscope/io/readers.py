"""Reading the workflow's tables."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd


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
