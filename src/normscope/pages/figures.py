"""The registry of figures: ``figures.yaml`` of each study, with what each figure shows.

A figure is an entry and a function ``draw`` in ``figures/<name>.py`` of its study's folder. This
module knows no study: what an entry may refer to is passed in. The workflow imports it at every
start, so it imports neither pandas nor matplotlib.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import to_jsonable_python

from normscope.errors import Explained, explain, suggest
from normscope.io.names import Key
from normscope.io.yamlfile import read_yaml
from normscope.schema import Distinct, NonEmpty, Strict

FILE = "figures.yaml"
Text = Annotated[str, Field(min_length=1)]


class Table(NamedTuple):
    """A table of a study: ``results/<study>/tables/<name>.csv``."""

    study: str
    name: str


class Finding(Strict):
    """A title that says what a figure shows, in runs in which a statement has this verdict."""

    title: Text
    statement: Key
    verdict: Text


class Figure(Strict):
    """What a figure shows, and from which tables it is drawn."""

    study: SkipJsonSchema[Text]  # the folder of the file, not a key of the entry
    title: Text
    finding: Finding | None = Field(
        default=None,
        description="title, statement and verdict: the title where this is its verdict",
    )
    caption: Text = Field(description="what is shown, reStructuredText; the drawing adds n")
    tables: Annotated[list[Text], NonEmpty, Distinct] = Field(
        description="the study's tables; those of another study as study.table"
    )
    needs: Text | None = Field(
        default=None,
        description="dotted path of a value of the configuration, as in params; a run in which it "
        "is empty leaves the figure out",
    )
    params: dict[str, Any] = Field(
        default={},
        description="what else the drawing takes; {config: a.dotted.path} stands for a value of "
        "the configuration: fields, keys, indices, properties, methods without arguments",
    )

    @property
    def sources(self) -> dict[str, Table]:
        """The tables by the names that the entry and its drawing use."""
        study = self.study
        return {t: Table(*t.split(".", 1)) if "." in t else Table(study, t) for t in self.tables}

    def heading(self, verdicts: Mapping[str, str]) -> str:
        """The title in a run with these verdicts of statements, by key."""
        finding = self.finding
        if finding is None or verdicts.get(finding.statement) != finding.verdict:
            return self.title
        return finding.title

    def values(self, configuration: BaseModel | Mapping[str, Any]) -> dict[str, Any]:
        """The parameters as JSON values, with references replaced by what they refer to.

        Raises:
            LookupError: the configuration has no such value.
        """
        return {name: _resolve(value, configuration) for name, value in self.params.items()}

    def is_drawn(self, configuration: BaseModel) -> bool:
        """Whether the configuration has what the figure needs.

        Raises:
            LookupError: there is no such key.
        """
        return self.needs is None or bool(_look_up(self.needs, configuration))


ENTRIES = TypeAdapter(dict[Key, Figure])


def load(folder: Path, studies: Iterable[str]) -> dict[str, Figure]:
    """The figures of the studies by name, in the order of the page.

    Args:
        folder: of the studies.
        studies: their names, in the order of the page.

    Raises:
        Explained: an entry is invalid, or two figures have the same name.
    """
    figures: dict[str, Figure] = {}
    for study in studies:
        path = folder / study / FILE
        for name, figure in _read(path, study).items() if path.is_file() else ():
            if name in figures:
                raise Explained(f"{path}: {name}: the study {figures[name].study} has this name")
            figures[name] = figure
    return figures


def select_figures(figures: Mapping[str, Figure], configuration: BaseModel) -> dict[str, Figure]:
    """The figures of a run, in order: those that have what they need."""
    return {name: one for name, one in figures.items() if one.is_drawn(configuration)}


def _read(path: Path, study: str) -> dict[str, Figure]:
    """The entries of one file by name."""
    raw = read_yaml(path)
    if isinstance(raw, dict):
        for name, fields in raw.items():
            if isinstance(fields, dict) and fields.setdefault("study", study) != study:
                raise Explained(f"{path}: {name}.study: the folder says it; remove the key")
    try:
        return ENTRIES.validate_python(raw, strict=True)
    except ValidationError as e:
        problems = explain(e.errors(), ENTRIES.json_schema)
        raise Explained("\n  ".join([f"{path} has an error:", *problems])) from None


def check(
    folder: Path,
    figures: Mapping[str, Figure],
    tables: Mapping[str, Collection[str]],
    configuration: BaseModel,
) -> None:
    """Check that every table, parameter and drawing that the entries name exists.

    Args:
        folder: of the studies.
        figures: their entries.
        tables: names of every study's tables.
        configuration: what references are looked up in.

    Raises:
        Explained: names every wrong entry, with the closest known name.
    """
    problems = [
        f"{entry.study}/{FILE}: {name}.{problem}"
        for name, entry in figures.items()
        for problem in _problems(folder, name, entry, tables, configuration)
    ]
    if problems:
        raise Explained("\n  ".join([f"{folder} has an error:", *problems]))


def _problems(
    folder: Path,
    name: str,
    entry: Figure,
    tables: Mapping[str, Collection[str]],
    configuration: BaseModel,
) -> Iterator[str]:
    for study, table in entry.sources.values():
        if study not in tables:
            yield f"tables: unknown study {study!r}; {suggest(study, tables)}"
        elif table not in tables[study]:
            yield f"tables: unknown table of {study} {table!r}; {suggest(table, tables[study])}"
    try:
        entry.values(configuration)
    except LookupError as e:
        yield f"params: {e.args[0]}"
    try:
        entry.is_drawn(configuration)
    except LookupError as e:
        yield f"needs: {e.args[0]}"
    drawing = folder / entry.study / "figures" / f"{name}.py"
    if not drawing.is_file():
        known = [path.stem for path in drawing.parent.glob("[!_]*.py")]
        yield f"drawing: unknown drawing {name!r}; {suggest(name, known)}; write {drawing}"


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
        if isinstance(value, list | tuple):
            value = {str(i): item for i, item in enumerate(value)}
        known = value if isinstance(value, Mapping) else _attributes(value)
        if part not in known:
            raise LookupError(f"config {path}: unknown part {part!r}; {suggest(part, known)}")
        value = value[part] if isinstance(value, Mapping) else getattr(value, part)
        value = value() if callable(value) else value
    return value


def _attributes(value: Any) -> list[str]:
    """The fields, properties and methods that a part of the configuration defines."""
    if not isinstance(value, BaseModel):
        return []
    own = sorted({*dir(type(value))} - {*dir(BaseModel)})
    return [*type(value).model_fields, *(name for name in own if not name.startswith("_"))]
