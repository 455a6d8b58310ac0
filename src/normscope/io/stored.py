"""Files of a trained model that say what it is: config.json, metrics.json. No torch."""

import json
from pathlib import Path

from normscope.errors import Explained


class Damaged(Explained):
    """A file of a trained model does not hold what it should."""


def damaged(path: Path, reason: str) -> Damaged:
    """What is wrong, and what to remove: the stored file, as a run's own files are links to it."""
    return Damaged(f"{path} is damaged ({reason}): remove {path.resolve()} and start again")


def read(path: Path, *names: str) -> dict:
    """Some values of a run's JSON file.

    Raises:
        Damaged: it is no JSON, or lacks one of them.
    """
    try:
        content = json.loads(path.read_text())
        return {name: content[name] for name in names}
    except (ValueError, KeyError, TypeError) as e:
        raise damaged(path, repr(e)) from e
