"""Registries of the paper: a YAML file in the folder of each study, with one entry per thing.

The workflow imports this module at every start, so it imports neither pandas nor matplotlib.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.json_schema import SkipJsonSchema

from normscope.errors import Explained, suggest
from normscope.io.names import Key
from normscope.io.yamlfile import read_yaml
from normscope.schema import Strict

Text = Annotated[str, Field(min_length=1)]


class Entry(Strict):
    """An entry of a registry. Its study is the folder of the file, and no key of it."""

    study: SkipJsonSchema[Text]


E = TypeVar("E", bound=Entry)


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


def read(folder: Path, file: str, studies: Iterable[str], entry: type[E]) -> dict[str, E]:
    """The entries of all studies by name.

    Args:
        folder: of the studies.
        file: name of the registry's file in the folder of each study that has one.
        studies: in whose order the entries come, and then in that of the file.
        entry: the type of the entries.

    Raises:
        Explained: an entry is invalid, or its name is taken.
    """
    entries: dict[str, E] = {}
    for study in studies:
        path = folder / study / file
        if path.is_file():
            own = _read(path, study, entry)
            if taken := sorted(entries.keys() & own.keys()):
                others = (
                    f"{name}: the study {entries[name].study} has this name" for name in taken
                )
                raise Explained(listed(path, others))
            entries |= own
    return entries


def _read(path: Path, study: str, entry: type[E]) -> dict[str, E]:
    """The entries of one file by name, in its order."""
    raw = read_yaml(path)
    if isinstance(raw, dict):
        raw = {
            name: {"study": study, **fields} if isinstance(fields, dict) else fields
            for name, fields in raw.items()
        }
    try:
        entries = dict[Key, entry]  # pyright: ignore[reportInvalidTypeForm]: known when it runs
        own = TypeAdapter(entries).validate_python(raw, strict=True)
    except ValidationError as e:
        errors = e.errors(include_url=False)
        raise Explained(listed(path, (_explain(error, entry) for error in errors))) from None
    if elsewhere := [name for name, known in own.items() if known.study != study]:
        problems = (f"{name}.study: the folder says it; remove the key" for name in elsewhere)
        raise Explained(listed(path, problems))
    return own


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
