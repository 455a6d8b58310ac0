"""Reading the workflow's tables."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd


def tables_in(directory: Path, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Tables of a directory by their names."""
    return {name: pd.read_csv(directory / f"{name}.csv") for name in names}
