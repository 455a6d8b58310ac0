"""Which source files decide a result: a script and the modules of normscope that it imports."""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def closure(script: Path) -> list[Path]:
    """The script and, transitively, every module of this package that it imports.

    Read from the syntax trees; nothing is imported. Sorted, the script first.
    """
    found: set[Path] = set()
    todo = [script.resolve()]
    while todo:
        path = todo.pop()
        for module in _imports(path) - found:
            found.add(module)
            todo.append(module)
    return [script, *sorted(found)]


def digest(files: Iterable[Path]) -> str:
    """SHA-256 over the contents of files, in the order given; where they lie does not matter."""
    total = hashlib.sha256()
    for path in files:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def imported(path: Path) -> set[str]:
    """Top-level names of all packages that a file's statements import."""
    return {name.partition(".")[0] for name in _names(path.resolve())}


@cache
def _names(path: Path) -> frozenset[str]:
    """What the statements of one file import, dotted; of ``from a import b`` both a and a.b."""
    names = set()
    for node in _statements(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements, however deep; expressions, which are most of a tree, hold none."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            todo += getattr(node, field, [])


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Files of this package that the statements of one file import."""
    files = set()
    for name in _names(path):
        package, *rest = name.split(".")
        if package == PACKAGE.name:
            found = [PACKAGE.joinpath(*rest[:i], "__init__.py") for i in range(len(rest) + 1)]
            if rest:
                found.append(PACKAGE.joinpath(*rest).with_suffix(".py"))
            files |= {path for path in found if path.is_file()}
    return frozenset(files)
