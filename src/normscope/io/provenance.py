"""Which code decides a result: a script and the modules of normscope that it imports."""

import ast
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from normscope.io.files import write_text

PACKAGE = Path(__file__).resolve().parents[1]


class Facts(NamedTuple):
    """What the statements of a file say: read from its content alone, and cached by it.

    Args:
        code: SHA-256 of the statements as Python itself writes them, without bare strings.
        names: what they import, dotted; of ``from a import b`` both a and a.b.
    """

    code: str
    names: list[str]


# by the SHA-256 of a file's content: those restored from a cache, and those used by this process
_restored: dict[str, Facts] = {}
_used: dict[str, Facts] = {}


def restore(path: Path) -> None:
    """Take facts from a cache that ``save`` has written, so that unchanged files are not parsed.

    A cache that is missing, damaged, or written by other code or another Python is ignored.
    """
    with suppress(OSError, UnicodeDecodeError):
        seal, _, body = path.read_text().rstrip("\n").partition("\n")
        if seal == _seal(body):
            _restored.update((key, Facts(*facts)) for key, facts in json.loads(body).items())


def save(path: Path) -> None:
    """Write the facts used by this process, if the cache lacks any; best effort."""
    if _used.keys() - _restored.keys():
        body = json.dumps(_used)
        with suppress(OSError):
            write_text(path, f"{_seal(body)}\n{body}")


def _seal(body: str) -> str:
    """SHA-256 of a cache's body and of what it depends on: this module and the Python version."""
    reader = hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode()).hexdigest()
    return hashlib.sha256(f"{reader}{body}".encode()).hexdigest()


def closure(*files: Path) -> list[Path]:
    """The files and, transitively, every module of this package that they import.

    Read from the syntax trees; nothing is imported. The files first, then the modules, sorted.
    """
    todo = [path.resolve() for path in files]
    modules = {package for path in todo for package in _packages(path)}
    todo += modules
    while todo:
        for module in _imports(todo.pop()) - modules:
            modules.add(module)
            todo.append(module)
    return [*files, *sorted(modules - {path.resolve() for path in files})]


def _packages(path: Path) -> Iterator[Path]:
    """The packages that Python imports before a module of this one."""
    for folder in path.parents:
        if folder != PACKAGE and folder.is_relative_to(PACKAGE):
            yield folder / "__init__.py"


def code_digest(files: Iterable[Path]) -> str:
    """SHA-256 over what the code of files does, in the order given.

    Comments, docstrings, layout, and where a file lies do not matter.
    """
    total = hashlib.sha256()
    for path in files:
        total.update(bytes.fromhex(_facts(path.resolve()).code))
    return total.hexdigest()


def digest(files: Iterable[Path]) -> str:
    """SHA-256 over the contents of files, in the order given; where they lie does not matter."""
    total = hashlib.sha256()
    for path in files:
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def imported(path: Path) -> set[str]:
    """Top-level names of all packages that a file's statements import."""
    return {name.partition(".")[0] for name in _facts(path.resolve()).names}


@cache
def _facts(path: Path) -> Facts:
    content = path.read_bytes()
    key = hashlib.sha256(content).hexdigest()
    if key not in _used:
        _used[key] = _restored.get(key) or _read(content)
    return _used[key]


def _read(content: bytes) -> Facts:
    tree = ast.parse(content)
    names = sorted(_names(tree))
    lines = ast.unparse(_Bare().visit(tree))
    return Facts(hashlib.sha256(lines.encode()).hexdigest(), names)


class _Bare(ast.NodeTransformer):
    """Drops strings that stand alone: docstrings, and what describes an attribute below it."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_string = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_string else node


def _names(tree: ast.Module) -> set[str]:
    """What statements import, dotted."""
    names = set()
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


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
    for name in _facts(path).names:
        package, *rest = name.split(".")
        if package == PACKAGE.name:
            candidates = [
                PACKAGE.joinpath(*rest[:i], "__init__.py") for i in range(1, len(rest) + 1)
            ]
            if rest:
                candidates.append(PACKAGE.joinpath(*rest).with_suffix(".py"))
            files |= {path for path in candidates if path.is_file()}
    return frozenset(files)
