"""Which code determines a result: a script and the modules of normscope that it imports."""

import ast
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from normscope.io.files import write_json

PACKAGE = Path(__file__).resolve().parents[1]


class Facts(NamedTuple):
    """What provenance needs to know of a file.

    Args:
        code: SHA-256 of the statements as Python itself writes them, without bare strings.
        names: what they import, dotted; for ``from a import b`` both a and a.b.
    """

    code: str
    names: frozenset[str]


def closure(*files: Path) -> list[Path]:
    """Return the files and, transitively, every module of this package that they import.

    The imports are read from the syntax trees; nothing is imported. The files come first, then the
    modules, sorted.
    """
    given = {path.resolve() for path in files}
    todo, modules = set(given), set[Path]()
    while todo:
        imported = _imports(todo.pop()) - modules
        modules |= imported
        todo |= imported
    return [*files, *sorted(modules - given)]


def code_digest(files: Iterable[Path]) -> str:
    """SHA-256 over the statements of files, in the order given.

    Comments, docstrings, layout, and the places of the files do not matter.
    """
    total = hashlib.sha256()
    for path in files:
        total.update(bytes.fromhex(_facts(path.absolute()).code))
    return total.hexdigest()


def source_digest(source: bytes) -> str:
    """SHA-256 of the statements of a source, without comments, docstrings and layout."""
    return _parse(source).code


def digest(files: Iterable[Path]) -> str:
    """SHA-256 over the contents of files, in the order given; their places do not matter."""
    total = hashlib.sha256()
    for path in files:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Top-level names of all packages that a file's statements import."""
    return frozenset(name.partition(".")[0] for name in _facts(path.absolute()).names)


_loaded: dict[str, Facts] = {}  # by the SHA-256 of a source
_asked: dict[str, Facts] = {}


def load_facts(path: Path) -> None:
    """Load what ``save_facts`` wrote, so that only changed sources are parsed.

    A file that is missing, damaged, or of another version of Python is ignored.
    """
    try:
        saved = json.loads(path.read_text())
        if saved["python"] == sys.version:
            _loaded.update(
                {k: Facts(c, frozenset(names)) for k, (c, names) in saved["facts"].items()}
            )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        _loaded.clear()


def save_facts(path: Path) -> None:
    """Write the facts that this process needed, if any was not loaded."""
    if not _asked.keys() <= _loaded.keys():
        facts = {key: (facts.code, sorted(facts.names)) for key, facts in _asked.items()}
        write_json(path, {"python": sys.version, "facts": facts})


@cache
def _facts(path: Path) -> Facts:
    content = path.read_bytes()
    key = hashlib.sha256(content).hexdigest()
    _asked[key] = _loaded.get(key) or _parse(content)
    return _asked[key]


def _parse(content: bytes) -> Facts:
    tree = ast.parse(content)
    names = frozenset(_names(tree))
    statements = ast.unparse(_Bare().visit(tree))
    return Facts(hashlib.sha256(statements.encode()).hexdigest(), names)


class _Bare(ast.NodeTransformer):
    """Removes strings that stand alone: docstrings of modules, classes, functions, attributes."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_string = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_string else node


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Files of this package that Python loads for the statements of one file, and before it.

    The ``__init__.py`` of normscope is for users, and determines no result.
    """
    folders = (folder for folder in path.parents if folder.is_relative_to(PACKAGE))
    files = {folder / "__init__.py" for folder in folders}
    files = files.union(*map(_modules, _facts(path).names))
    return frozenset(filter(Path.is_file, files - {PACKAGE / "__init__.py"}))


@cache
def _modules(name: str) -> frozenset[Path]:
    """The files of a dotted name of this package, and of the packages around it."""
    package, *rest = name.split(".")
    if package != PACKAGE.name:
        return frozenset()
    above = (PACKAGE.joinpath(*rest[:i], "__init__.py") for i in range(1, len(rest) + 1))
    return frozenset(filter(Path.is_file, (*above, PACKAGE.joinpath(*rest).with_suffix(".py"))))
