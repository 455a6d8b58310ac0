"""The tables of a run, or of the evidence that a project keeps, by their names."""

import hashlib
import io
from pathlib import Path

import pandas as pd

from normscope.errors import Explained, suggest
from normscope.io.files import seal
from normscope.io.stored import damaged


def tables(results: str | Path = "results") -> list[str]:
    """Names of the tables of a folder, ``study.table``.

    Args:
        results: of a run, or ``evidence``.

    Raises:
        Explained: it has none.
    """
    return list(_files(Path(results)))


def table(name: str, results: str | Path = "results") -> pd.DataFrame:
    """A table; an empty cell is missing, and any word, such as ``NA``, is a word.

    Args:
        name: ``study.table``, such as ``main.chosen``: as in statements and figures.
        results: of a run, or ``evidence``.

    Raises:
        Explained: there is no such table, or (``Damaged``) it is not what was written.
    """
    files = _files(Path(results))
    if name not in files:
        raise Explained(f"{results} has no table {name!r}; {suggest(name, files)}")
    path = files[name]
    content = path.read_bytes()
    if seal(path).is_file() and hashlib.sha256(content).hexdigest() != seal(path).read_text()[:64]:
        raise damaged(path, "its SHA-256 is not the one beside it")
    return pd.read_csv(io.BytesIO(content), keep_default_na=False, na_values=[""])


def _files(folder: Path) -> dict[str, Path]:
    """Tables by name: ``<study>/tables/<table>.csv`` of a run, ``<study>/<table>.csv`` of evidence.

    Raises:
        Explained: the folder has none.
    """
    paths = sorted(folder.glob("*/tables/*.csv")) or sorted(folder.glob("*/*.csv"))
    if not paths:
        raise Explained(f"{folder} has no tables: name the folder of a run, or of evidence")
    return {f"{path.relative_to(folder).parts[0]}.{path.stem}": path for path in paths}
