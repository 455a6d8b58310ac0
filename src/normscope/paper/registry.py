"""Registries of the paper, YAML files with an entry a thing: read, and their errors in words.

The workflow reads this module for every job: no pandas, no matplotlib.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from normscope.errors import Explained, suggest
from normscope.io.names import Key
from normscope.io.yamlfile import read_yaml
from normscope.schema import Strict

Text = Annotated[str, Field(min_length=1)]
E = TypeVar("E", bound=Strict)


class Table(NamedTuple):
    """A table of a study: ``results/<study>/tables/<name>.csv``."""

    study: str
    name: str

    def problems(self, tables: Mapping[str, Collection[str]]) -> Iterable[str]:
        """Why it is none of the studies' tables, whose names are given by study."""
        if self.study not in tables:
            yield unknown("study", self.study, tables)
        elif self.name not in tables[self.study]:
            yield unknown(f"table of {self.study}", self.name, tables[self.study])


def read(path: Path, entry: type[E]) -> dict[str, E]:
    """The entries by name, in the order of the file.

    Raises:
        Explained: an entry is no entry, or stands twice.
    """
    try:
        entries = dict[Key, entry]  # pyright: ignore[reportInvalidTypeForm]: known when it runs
        return TypeAdapter(entries).validate_python(read_yaml(path), strict=True)
    except ValidationError as e:
        errors = e.errors(include_url=False)
        raise Explained(listed(path, (_explain(error, entry) for error in errors))) from None


def unknown(kind: str, word: str, known: Collection[str]) -> str:
    """That a word is none of the known ones, with the nearest of these."""
    return f"unknown {kind} {word!r}; {suggest(word, known)}"


def listed(path: Path, problems: Iterable[str]) -> str:
    """All that is wrong with a file."""
    return "\n".join([f"{path} has an error:", *(f"  {problem}" for problem in problems)])


def _explain(error: Any, entry: type[Strict]) -> str:
    """One line of a ValidationError: the entry and its key, what is wrong."""
    key = ".".join(str(part) for part in error["loc"] if part != "[key]") or "the file"
    if error["type"] == "extra_forbidden":
        return f"{key}: {unknown('key', str(error['loc'][-1]), list(entry.model_fields))}"
    return f"{key}: {error['msg']}"
