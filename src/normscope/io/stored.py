"""Files that say what trained models are: config.json, metrics.csv. No torch."""

import json
from pathlib import Path

import pandas as pd

from normscope.errors import Explained


class Damaged(Explained):
    """A file of trained models does not hold what it should."""


def damaged(path: Path, reason: str) -> Damaged:
    """What is wrong, and what to remove: the stored file, as a job's own files are links to it."""
    return Damaged(f"{path} is damaged ({reason}): remove {path.resolve()} and start again")


def read(path: Path, *names: str) -> dict:
    """Some values of a job's JSON file.

    Raises:
        Damaged: it is no JSON, or lacks one of them.
    """
    try:
        content = json.loads(path.read_text())
        return {name: content[name] for name in names}
    except (ValueError, KeyError, TypeError) as e:
        raise damaged(path, repr(e)) from e


def metrics(folder: Path) -> pd.DataFrame:
    """``normscope.train.outputs.METRICS`` of the models of a job, by seed.

    Raises:
        Damaged: the file is not such a table.
    """
    path = folder / "metrics.csv"
    try:
        table = pd.read_csv(path).astype({"seed": int, "val_loss": float, "diverged_at": "Int64"})
        return table.set_index("seed")
    except (ValueError, KeyError) as e:  # pandas' own errors of parsing are of these
        raise damaged(path, repr(e)) from e
