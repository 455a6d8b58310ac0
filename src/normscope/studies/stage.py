"""What the scripts call of a study, and the folders that they hand over. No torch.

A study's folder has ``tabulate.py`` with ``tabulate``, and may have ``probe.py`` with ``probe`` and
``train.py`` with ``prepare``, without which its models are Transformers that learn a text. The
annotation of the first argument, ``recipe``, is the type that a job's parameters are read as.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import Field

from normscope.columns import Table
from normscope.errors import Explained, suggest
from normscope.schema import PositiveInt, Strict

FOLDER = Path(__file__).parent
FUNCTIONS = {"train": "prepare", "probe": "probe", "tabulate": "tabulate"}  # by module


class Inputs(Strict):
    """The folders that a stage reads."""

    models: Path = Field(description="directory with one folder per training job")
    data: Path | None = Field(
        default=None, description="directory with train.bin, val.bin, meta.pkl, meta.json"
    )
    threads: PositiveInt = 1

    @property
    def corpus(self) -> Path:
        """The directory of the dataset."""
        if self.data is None:
            raise Explained("this study reads the corpus: give its directory, --data")
        return self.data


class ProbeInputs(Inputs):
    """What a probe reads."""

    name: str = Field(description="of the probing job; of one that measures one training job, its")


class TableInputs(Inputs):
    """What the tables of a study are made from."""

    probes: Path = Field(description="directory with one folder per probing job")
    files: Mapping[str, Path] = Field(default={}, description="other files, by their names")


def stage(module: str, default: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A study's function for a stage; the study is the first word of the command line.

    Args:
        module: of ``FUNCTIONS``.
        default: for a study without this module.

    Raises:
        Explained: the word is missing, or no study with this stage.
    """
    wanted = "tables" if default else module
    known = sorted(path.parent.name for path in FOLDER.glob(f"*/{wanted}.py"))
    study = sys.argv[1] if len(sys.argv) > 1 else ""
    if study not in known:
        raise Explained(
            f"the first argument is {study!r}, and should be a study; {suggest(study, known)}"
        )
    if default and not (FOLDER / study / f"{module}.py").is_file():
        return default
    return getattr(import_module(f"normscope.studies.{study}.{module}"), FUNCTIONS[module])


def recipe_type(function: Callable[..., Any]) -> Any:
    """The type of a stage's recipe."""
    return get_type_hints(function)["recipe"]


def tables_of(tabulate: Callable[..., Any]) -> Mapping[str, Table]:
    """The declared tables of the study that ``tabulate`` belongs to."""
    return import_module(tabulate.__module__.replace(".tabulate", ".tables")).TABLES


def declared_tables(*studies: str) -> dict[str, dict[str, Table]]:
    """The declared tables of these studies, or of every study, by study and table."""
    names = sorted(studies) or sorted(path.parent.name for path in FOLDER.glob("*/tables.py"))
    return {name: import_module(f"normscope.studies.{name}.tables").TABLES for name in names}


def source(function: Callable[..., Any]) -> Path:
    """The module of a stage, whose code decides its results."""
    return Path(str(sys.modules[function.__module__].__file__))
