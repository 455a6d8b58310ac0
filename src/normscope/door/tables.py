"""List and read the tables of a run, or of the evidence that a project keeps."""

from pathlib import Path

import pandas as pd

from normscope import studies
from normscope.door.arguments import expect, folder_of
from normscope.errors import Explained, suggest
from normscope.io.files import is_altered
from normscope.io.stored import damaged

STUDIES = {path.parent.name for path in Path(studies.__path__[0]).glob("*/grid.py")}


def tables(results: str | Path = "results") -> list[str]:
    """List the names of the tables of a folder, ``study.table``.

    Args:
        results: folder of a run, or ``evidence``.

    Raises:
        Explained: the folder does not exist or has no tables.
    """
    return list(_files(folder_of(results)))


def table(name: str, results: str | Path = "results") -> pd.DataFrame:
    """Read a table. Empty cells are missing values; ``NA`` and the like are strings.

    Args:
        name: ``study.table``, such as ``main.chosen``, as in statements and figures.
        results: folder of a run, or ``evidence``.

    Raises:
        Explained: the table does not exist, or (``Damaged``) its file was changed.
    """
    files = _files(folder_of(results))
    if expect("name", name, str, "a name that normscope.tables() lists") not in files:
        raise Explained(f"{results} has no table {name!r}; {suggest(name, files)}")
    path = files[name]
    try:
        if is_altered(path):
            raise damaged(path, "its SHA-256 differs from the one in the file next to it")
        return pd.read_csv(path, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as e:  # pandas' errors of parsing are ValueErrors
        raise damaged(path, repr(e)) from e


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
