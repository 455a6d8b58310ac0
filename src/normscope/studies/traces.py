"""Where the test of a statement stands, what it reads, and the code that measures it.

Lines are YAML's and Python's own marks, read when the workflow starts: none is typed anywhere. No
pandas, and no import of what is read.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from normscope.io.provenance import PACKAGE, closure
from normscope.ledger.expression import columns_in

STAGES = ("tables", "probe", "train")  # a study's modules, from what statements read to its models
MEASURING = ("measure", "statistics")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Lines(NamedTuple):
    """Lines of a file of the project."""

    path: Path
    first: int
    last: int


class Definition(NamedTuple):
    """A function or a class, and the columns that it writes; of names in part patterns."""

    lines: Lines
    columns: tuple[str, ...]


class Source(NamedTuple):
    """A module's statements."""

    path: Path
    tree: ast.Module


def traces(claims: Path, root: Path) -> dict[str, dict[str, Any]]:
    """Of every statement, by its key, as JSON has it.

    Args:
        claims: data/claims.yaml.
        root: the project's folder.

    Returns:
        ``test``: the lines of its entry; ``tables``: what it reads, as ``study.table``; ``code``:
        the lines that measure it. Lines are ``path:first-last``, from the project's folder; a
        user's own claims.yaml has its path as given.
    """
    text = claims.read_text()
    entries = yaml.load(text, LOADER)["claims"]  # noqa: S506 - a SafeLoader
    functions = {}
    for path in sorted((PACKAGE / "studies").glob("*/claims.py")):
        functions |= _tests(_source(path))
    root = root.resolve()
    places = {}
    for key, (first, last) in spans(text).items():
        own = functions.get(key)
        tables, code = _read(entries[key], own)
        places[key] = {
            "test": _words(Lines(claims, first, last), root),
            "tables": tables,
            "code": [_words(lines, root) for lines in code],
        }
    return places


def _words(lines: Lines, root: Path) -> str:
    path = lines.path.resolve()
    name = path.relative_to(root) if path.is_relative_to(root) else lines.path
    return f"{name.as_posix()}:{lines.first}-{lines.last}"


def spans(text: str) -> dict[str, tuple[int, int]]:
    """First and last line of every entry, without the comments and empty lines behind it."""
    lines = text.splitlines()
    root = yaml.compose(text, LOADER)
    assert isinstance(root, yaml.MappingNode)
    (claims,) = [value for key, value in root.value if key.value == "claims"]
    spans = {}
    for key, value in claims.value:
        last = value.end_mark.line
        while not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#"):
            last -= 1
        spans[key.value] = key.start_mark.line + 1, last
    return spans


class _Test(NamedTuple):
    """A function that tests a statement, and the tables that it reads."""

    lines: Lines
    tables: tuple[str, ...]


def _tests(source: Source) -> dict[str, _Test]:
    """The functions of a module that are marked with a statement's key."""
    functions = {n.name: n for n in source.tree.body if isinstance(n, ast.FunctionDef)}

    def tables(name: str, seen: frozenset[str]) -> Iterator[str]:
        for node in ast.walk(functions[name]):
            match node:
                case ast.Call(func=ast.Attribute(attr="table"), args=[ast.Constant(value=str(t))]):
                    yield t
                case ast.Name(id=other) if other in functions and other not in seen:
                    yield from tables(other, seen | {other})

    tests = {}
    for name, function in functions.items():
        for mark in function.decorator_list:
            match mark:
                case ast.Call(func=ast.Name(id="claim"), args=[ast.Constant(value=str(key))]):
                    lines = Lines(source.path, mark.lineno, function.end_lineno or mark.lineno)
                    tests[key] = _Test(lines, tuple(dict.fromkeys(tables(name, frozenset({name})))))
    return tests


def _read(entry: Mapping[str, Any], own: _Test | None) -> tuple[list[str], list[Lines]]:
    """The tables of a statement, and the code that its numbers come from."""
    contrast = entry.get("contrast")
    tables = [] if contrast is None else [contrast["table"]]
    code = [] if own is None else [own.lines]
    if contrast is not None:
        study = contrast["table"].partition(".")[0]
        stages = (PACKAGE / "studies" / study / f"{stage}.py" for stage in STAGES)
        files = closure(*filter(Path.is_file, stages))
        near = [path for path in files if _is_near(path, study)]
        for column in columns_in(str(contrast["measure"])):
            code += _writers(near, column)
    if own is not None:
        tables += own.tables
        for table in own.tables:
            study, _, name = table.partition(".")
            code += _writers([PACKAGE / "studies" / study / "tables.py"], name)
    return list(dict.fromkeys(tables)), list(dict.fromkeys(code))


def _is_near(path: Path, study: str) -> bool:
    """Whether a module is a study's own, or of the rooms that measure."""
    return path.parent.name in (study, *MEASURING)


def _writers(files: Iterable[Path], name: str) -> list[Lines]:
    """What writes a column, or a table, of this name."""
    return [
        definition.lines
        for path in files
        for definition in _definitions(path)
        if any(re.fullmatch(column, name) for column in definition.columns)
    ]


@cache
def _source(path: Path) -> Source:
    return Source(path, ast.parse(path.read_bytes()))


@cache
def _definitions(path: Path) -> tuple[Definition, ...]:
    """The outermost functions and classes of a module that write columns."""
    definitions = []
    for node in _source(path).tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            columns = tuple(dict.fromkeys(_columns(node)))
            lines = Lines(path, node.lineno, node.end_lineno or node.lineno)
            definitions += [Definition(lines, columns)] * bool(columns)
    return tuple(definitions)


def _columns(definition: ast.AST) -> Iterator[str]:
    """Patterns of the names under which it puts values: keys, keywords, fields."""
    for node in ast.walk(definition):
        match node:
            case ast.Dict(keys=keys):
                yield from _names(keys)
            case ast.DictComp(key=key):
                yield from _names([key])
            case ast.Call(keywords=keywords):
                yield from (re.escape(k.arg) for k in keywords if k.arg)
            case ast.Assign(targets=targets):
                for target in targets:
                    parts = target.elts if isinstance(target, ast.Tuple) else [target]
                    yield from _names(p.slice for p in parts if isinstance(p, ast.Subscript))
            case ast.ClassDef(body=body):
                fields = [n.target for n in body if isinstance(n, ast.AnnAssign)]
                yield from (re.escape(f.id) for f in fields if isinstance(f, ast.Name))


def _names(nodes: Iterable[ast.expr | None]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Constant(value=str(name)):
                yield re.escape(name)
            case ast.JoinedStr(values=values) if isinstance(values[0], ast.Constant):
                yield "".join(
                    re.escape(str(v.value)) if isinstance(v, ast.Constant) else r"\w+"
                    for v in values
                )
