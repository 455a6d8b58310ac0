"""Tables of the reference pages, generated from the code and its registries.

A line ``<!-- keys: configuration -->`` in a page is replaced by what ``configuration()`` returns.
"""

import csv
import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from normscope.config import Config, load
from normscope.nn.arms import ARMS
from normscope.pages.figures import Figure
from normscope.pilot import read_project
from normscope.studies.stage import declared_tables
from normscope.verdicts.comparison import Comparison
from normscope.verdicts.document import Document, Statement

ROOT = Path(__file__).parents[1]
MARK = re.compile(r"^<!-- keys: (\w+) -->$", re.MULTILINE)


def filled(page: str) -> str:
    """A page with each mark replaced by its table."""
    return MARK.sub(lambda mark: TABLES[mark[1]](), page)


def configuration() -> str:
    """The keys of config.yaml."""
    return _models(Config)


def statements() -> str:
    """The keys of a file of data/claims/, as the docstrings describe them."""
    return "\n\n".join(
        f"### {model.__name__}\n\n{_table(('key', 'description'), _arguments(model))}"
        for model in (Document, Statement, Comparison)
    )


def _arguments(model: type[BaseModel]) -> list[tuple[str, str]]:
    """The arguments of a docstring."""
    words = inspect.cleandoc(model.__doc__ or "").partition("Args:\n")[2]
    arguments = re.findall(r"^    (\w[\w, ]*): (.+(?:\n {8}.+)*)", words, re.MULTILINE)
    return [
        (_code(names.split(", ")), _escaped(" ".join(said.split())).replace("``", "`"))
        for names, said in arguments
    ]


def figures() -> str:
    """The keys of an entry of the figures.yaml of a study."""
    return _models(Figure)


def vocabulary() -> str:
    """The values that statements about each study may use, with the settings of config.yaml."""
    rows = []
    for name, study in load(read_project(ROOT)).studies.items():
        words = study.vocabulary()
        rows += [
            (name, f"`{column}`", _values(words.values_of(column)))
            for column in dict.fromkeys([*words.names, *words.values])
        ]
    return _table(("study", "column", "values"), rows)


def columns() -> str:
    """The tables of every study with their columns, as they are declared."""
    parts = []
    for study, tables in declared_tables().items():
        parts.append(f"## {study}")
        for name, table in tables.items():
            rows = [
                (f"`{c.name}`", c.kind.__name__, _escaped(c.meaning), c.unit, _role(c.role))
                for c in table.columns
            ]
            parts += [
                f"### {study}.{name}",
                f"One row is {table.rows}. Computed by `{table.source}`.",
                _table(("column", "type", "content", "unit", "role"), rows),
            ]
    return "\n\n".join(parts)


def arms() -> str:
    """The registry of arms."""
    rows = [(f"`{name}`", arm.label, arm.source.replace("|", "\\|")) for name, arm in ARMS.items()]
    return _table(("name", "label", "source"), rows)


def error_rates() -> str:
    """The simulated rates of false decisions."""
    with (ROOT / "docs/error_rates.csv").open() as file:
        rates = list(csv.DictReader(file))
    sizes = sorted({row["n"] for row in rates}, key=int)
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for row in rates:
        known = rows.setdefault((row["test"], row["truth"]), {})
        known[row["n"]] = f"{float(row['rate']):.2%}"
    cells = [(*key, *(known[n] for n in sizes)) for key, known in rows.items()]
    return _table(("test", "truth", *(f"n = {n}" for n in sizes)), cells)


TABLES = {
    f.__name__: f
    for f in (
        configuration,
        statements,
        figures,
        vocabulary,
        columns,
        arms,
        error_rates,
    )
}


def _values(values: Iterable[object]) -> str:
    """The values of a column, or a reference to the registry if they are its arms."""
    return "an arm of the registry" if list(values) == list(ARMS) else _code(values)


def _role(role: str) -> str:
    """The role of a column, where it says more than its type."""
    return "" if role in ("measure", "note", "count") else role


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _code(words: Iterable[object]) -> str:
    return ", ".join(f"`{str(w).lower() if isinstance(w, bool) else w}`" for w in words)


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (titles, *rows)]
    lines.insert(1, f"| {' | '.join('---' for _ in titles)} |")
    return "\n".join(lines)


def _models(top: type[BaseModel]) -> str:
    """One section per model of the schema: first the outermost model, then its parts."""
    # anchors are shared by the whole site, and two pages may have models with the same name
    schema = top.model_json_schema(ref_template=f"#keys-{top.__name__}-{{model}}")
    models = {top.__name__: schema, **schema.get("$defs", {})}
    parts = []
    for name, model in models.items():
        if "properties" not in model:
            continue
        needed = model.get("required", [])
        rows = [
            (f"`{key}`", _kind(node), _default(key, node, needed), _words(node))
            for key, node in model["properties"].items()
        ]
        anchor = f"keys-{top.__name__}-{name}"
        parts += [f"({anchor})=\n## {name}", model.get("description", "").replace("``", "`")]
        parts.append(_table(("key", "value", "default", "description"), rows))
    return "\n\n".join(parts)


def _words(node: Mapping[str, Any]) -> str:
    return _escaped(" ".join(node.get("description", "").split()))


def _default(key: str, node: Mapping[str, Any], needed: Iterable[str]) -> str:
    if key in needed:
        return "required"
    value = node.get("default")
    return "" if value is None or isinstance(value, dict) else f"`{value}`"


def _kind(node: Mapping[str, Any]) -> str:
    """The kind of value that a key takes, in words."""
    match node:
        case {"$ref": str(ref)}:
            words = f"[{ref.rpartition('-')[2]}]({ref})"
        case {"enum": list(values)}:
            words = _code(values)
        case {"const": value}:
            words = f"`{value}`"
        case {"anyOf": list(parts)} | {"oneOf": list(parts)}:
            words = " or ".join(dict.fromkeys(map(_kind, parts)))
        case {"type": "array", "items": dict(item)}:
            words = f"list of {_kind(item)}"
        case {"type": "object"}:
            values = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
            kinds = [_kind(value) for value in values if isinstance(value, dict)]
            words = f"mapping to {kinds[0]}" if kinds else "mapping"
        case _:
            kind = str(node.get("type", "any"))
            words = {"null": "nothing", "boolean": "true or false"}.get(kind, kind)
    return words
