"""The folder of the studies, and what can be read from it without loading a study."""

from importlib import import_module
from pathlib import Path

from normscope.columns import Table

FOLDER = Path(__file__).parent


def declared_tables(*studies: str) -> dict[str, dict[str, Table]]:
    """The declared tables of these studies, or of every study, by study and table."""
    names = sorted(studies) or sorted(path.parent.name for path in FOLDER.glob("*/tables.py"))
    return {name: import_module(f"normscope.studies.{name}.tables").TABLES for name in names}
