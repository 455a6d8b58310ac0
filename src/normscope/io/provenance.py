"""Which code decides a result: a script and the modules of normscope that it imports."""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def closure(*files: Path) -> list[Path]:
    """The files and, transitively, every module of this package that they import.

    Read from the syntax trees; nothing is imported. The files first, then the modules, sorted.
    """
    modules: set[Path] = set()
    todo = [path.resolve() for path in files]
    while todo:
        for module in _imports(todo.pop()) - modules:
            modules.add(module)
            todo.append(module)
    return [*files, *sorted(modules - {path.resolve() for path in files})]


def code_digest(files: Iterable[Path]) -> str:
    """SHA-256 over what the code of files does, in the order given.

    Comments, docstrings, layout, and where a file lies do not matter.
    """
    total = hashlib.sha256()
    for path in files:
        total.update(_code(path.resolve()))
    return total.hexdigest()


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
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


@cache
def _code(path: Path) -> bytes:
    """SHA-256 of a file's statements, as Python itself writes them, without bare strings."""
    lines = ast.unparse(_Bare().visit(ast.parse(path.read_bytes())))
    return hashlib.sha256(lines.encode()).digest()


class _Bare(ast.NodeTransformer):
    """Drops strings that stand alone: docstrings, and what describes an attribute below it."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_string = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_string else node


@cache
def _names(path: Path) -> frozenset[str]:
    """What the statements of one file import, dotted; of ``from a import b`` both a and a.b."""
    names = set()
    for node in _statements(_tree(path)):
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
    """Files of this package that the statements of one file import.

    The package's own ``__init__.py`` is what users import, and decides no result.
    """
    files = set()
    for name in _names(path):
        package, *rest = name.split(".")
        if package == PACKAGE.name:
            candidates = [
                PACKAGE.joinpath(*rest[:i], "__init__.py") for i in range(1, len(rest) + 1)
            ]
            if rest:
                candidates.append(PACKAGE.joinpath(*rest).with_suffix(".py"))
            files |= {path for path in candidates if path.is_file()}
    return frozenset(files)
