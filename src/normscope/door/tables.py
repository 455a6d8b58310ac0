"""The tables of a run, or of the evidence that a project keeps, by their names."""

from pathlib import Path

import pandas as pd

from normscope import studies
from normscope.errors import Explained, suggest
from normscope.io.seals import is_altered
from normscope.io.stored import damaged

STUDIES = {path.parent.name for path in Path(studies.__path__[0]).glob("*/grid.py")}


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
    if is_altered(path):
        raise damaged(path, "its SHA-256 is not the one beside it")
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def _files(folder: Path) -> dict[str, Path]:
    """Tables by name: ``<study>/tables/<table>.csv`` of a run, ``<study>/<table>.csv`` of evidence.

    Raises:
        Explained: the folder has none.
    """
    paths = sorted(folder.glob("*/tables/*.csv")) or sorted(folder.glob("*/*.csv"))
    named = [(path.relative_to(folder).parts[0], path) for path in paths]
    files = {f"{study}.{path.stem}": path for study, path in named if study in STUDIES}
    if not files:
        raise Explained(f"{folder} has no tables: name the folder of a run, or of evidence")
    return files
