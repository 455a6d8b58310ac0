"""config.json and metrics.csv of trained models. No torch."""

import json
from pathlib import Path

import pandas as pd

from normscope.errors import Explained


class Damaged(Explained):
    """A file of trained models does not hold what it should."""


def damage(path: Path, reason: str) -> Damaged:
    """The error for a damaged file; it names the stored file, to which the job's file is a link."""
    return Damaged(f"{path} is damaged ({reason}): remove {path.resolve()} and start again")


def read(path: Path, *names: str) -> dict:
    """Read values of a job's JSON file."""
    try:
        content = json.loads(path.read_text())
        return {name: content[name] for name in names}
    except (ValueError, KeyError, TypeError) as e:
        raise damage(path, repr(e)) from e


def metrics(folder: Path) -> pd.DataFrame:
    """Read the metrics of a job's models (``normscope.train.files.METRICS``), by seed."""
    path = folder / "metrics.csv"
    try:
        table = pd.read_csv(path).astype({"seed": int, "val_loss": float, "diverged_at": "Int64"})
        return table.set_index("seed")
    except (ValueError, KeyError) as e:  # pandas' parsing errors are ValueErrors
        raise damage(path, repr(e)) from e
