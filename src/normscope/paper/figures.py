"""The registry of figures, ``figures.yaml`` of each study: what each shows, from which tables.

A figure is an entry and a function ``draw`` in ``figures/<name>.py`` of its study's folder. This
module knows no study: what an entry may refer to is passed in. The workflow imports it at every
start, so it imports neither pandas nor matplotlib.
"""

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field
from pydantic_core import to_jsonable_python

from normscope.errors import Explained
from normscope.paper.registry import Entry, Table, Text, listed, read, unknown
from normscope.schema import Distinct, Some

FILE = "figures.yaml"


class Figure(Entry):
    """What a figure shows, and of what it is drawn."""

    title: Text
    category: Text = Field(description="where Snakemake's report lists it")
    caption: Text = Field(description="what is shown, reStructuredText; the drawing adds n")
    tables: Annotated[list[Text], Some, Distinct] = Field(
        description="the study's tables; those of another study as study.table"
    )
    params: dict[str, Any] = Field(
        default={},
        description="what else the drawing takes; {config: a.dotted.path} stands for a value of "
        "the configuration: fields, keys, indices, properties, methods without arguments",
    )

    @property
    def sources(self) -> dict[str, Table]:
        """Every table by the name that the entry and its drawing have for it."""
        study = self.study
        return {t: Table(*t.split(".", 1)) if "." in t else Table(study, t) for t in self.tables}

    def values(self, configuration: BaseModel | Mapping[str, Any]) -> dict[str, Any]:
        """The parameters as JSON has them, references replaced by what they refer to.

        Raises:
            LookupError: the configuration has no such value.
        """
        return {name: _resolve(value, configuration) for name, value in self.params.items()}


def load(folder: Path, studies: Iterable[str]) -> dict[str, Figure]:
    """The figures of the studies by name, in the order of the page.

    Args:
        folder: of the studies.
        studies: their names, in the order of the page.

    Raises:
        Explained: an entry is invalid, or its name is taken.
    """
    return read(folder, FILE, studies, Figure)


def check(
    folder: Path,
    figures: Mapping[str, Figure],
    tables: Mapping[str, Collection[str]],
    configuration: BaseModel,
) -> None:
    """Whether all that the entries refer to is there.

    Args:
        folder: of the studies.
        figures: their entries.
        tables: names of every study's tables.
        configuration: what references are looked up in.

    Raises:
        Explained: something is not there; names every entry, with the nearest right word.
    """
    problems = [
        f"{entry.study}/{FILE}: {name}.{problem}"
        for name, entry in figures.items()
        for problem in _problems(folder, name, entry, tables, configuration)
    ]
    if problems:
        raise Explained(listed(folder, problems))


def _problems(
    folder: Path,
    name: str,
    entry: Figure,
    tables: Mapping[str, Collection[str]],
    configuration: BaseModel,
) -> Iterator[str]:
    for table in entry.sources.values():
        for problem in table.problems(tables):
            yield f"tables: {problem}"
    try:
        entry.values(configuration)
    except LookupError as e:
        yield f"params: {e.args[0]}"
    drawing = folder / entry.study / "figures" / f"{name}.py"
    if not drawing.is_file():
        known = [path.stem for path in drawing.parent.glob("[!_]*.py")]
        yield f"drawing: {unknown('drawing', name, known)}; write {drawing}"


def _resolve(value: Any, configuration: BaseModel | Mapping[str, Any]) -> Any:
    """A parameter with its references replaced, also inside of lists and mappings."""
    match value:
        case {"config": str(path), **rest} if not rest:
            return to_jsonable_python(_look_up(path, configuration))
        case dict():
            return {key: _resolve(part, configuration) for key, part in value.items()}
        case list():
            return [_resolve(part, configuration) for part in value]
    return value


def _look_up(path: str, configuration: BaseModel | Mapping[str, Any]) -> Any:
    """The value at a dotted path."""
    value: Any = configuration
    for part in path.split("."):
        known = _parts(value)
        if part not in known:
            raise LookupError(f"config {path}: {unknown('part', part, known)}")
        if isinstance(value, Mapping):
            value = value[part]
        else:
            value = value[int(part)] if isinstance(value, list | tuple) else getattr(value, part)
            value = value() if callable(value) else value
    return value


def _parts(value: Any) -> list[str]:
    """What a path may go on with: keys, indices, or what an object says of itself."""
    if isinstance(value, Mapping):
        return list(value)
    if isinstance(value, list | tuple):
        return [str(i) for i in range(len(value))]
    if not isinstance(value, BaseModel):
        return []
    own = set(dir(type(value))) - set(dir(BaseModel))
    derived = sorted(name for name in own if _takes_nothing(getattr(type(value), name)))
    return [*type(value).model_fields, *derived]


def _takes_nothing(member: Any) -> bool:
    """Whether it is a property or a method without arguments."""
    if inspect.isfunction(member):
        return len(inspect.signature(member).parameters) == 1
    return isinstance(member, property | cached_property)
