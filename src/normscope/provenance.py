"""Which source files decide a result: a script and the modules of normscope that it imports."""

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


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


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Files of this package that the statements of one file import."""
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    files = set()
    for name in names:
        package, *rest = name.split(".")
        if package == PACKAGE.name:
            found = [PACKAGE.joinpath(*rest[:i], "__init__.py") for i in range(len(rest) + 1)]
            if rest:
                found.append(PACKAGE.joinpath(*rest).with_suffix(".py"))
            files |= {path for path in found if path.is_file()}
    return frozenset(files)
