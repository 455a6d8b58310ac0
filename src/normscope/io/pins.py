"""Which pinned packages a result depends on: those that its files import, and what they need."""

import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from normscope.io.provenance import imports_of

# packages that are installed under another name than that of their module
INSTALLED_AS = {"pypandoc": "pypandoc-binary", "yaml": "pyyaml"}


def pins_of(files: Iterable[Path], constraints: Path) -> str:
    """``name==version`` of every package that the files need, sorted, as one line.

    Args:
        files: Python sources; imports inside functions count.
        constraints: a constraints file of pip.

    Raises:
        ValueError: a file imports a package without a pin.
    """
    pins = _pins(constraints.read_text())
    needed: set[str] = set()
    for path in files:
        for module in imports_of(path) - sys.stdlib_module_names - {"normscope"}:
            name = canonicalize_name(INSTALLED_AS.get(module, module))
            if name not in pins:
                raise ValueError(f"{path} imports {module}, which {constraints} does not pin")
            needed |= _with_requirements(name)
    return " ".join(f"{name}=={pins[name]}" for name in sorted(needed & pins.keys()))


@cache
def _with_requirements(name: str) -> frozenset[str]:
    """A package and, transitively, all that it requires on this machine."""
    packages: set[str] = set()
    todo = {name}
    while todo:
        package = todo.pop()
        packages.add(package)
        todo |= _requirements(package) - packages
    return frozenset(packages)


@cache
def _requirements(name: str) -> frozenset[str]:
    try:
        wanted = [Requirement(text) for text in requires(name) or [] if "extra ==" not in text]
    except PackageNotFoundError:  # required by another package, and not installed
        return frozenset()
    here = [r for r in wanted if r.marker is None or r.marker.evaluate()]
    return frozenset(canonicalize_name(r.name) for r in here)


def find_other_versions(pins: Iterable[str]) -> list[str]:
    """Return a phrase for each pin ``name==version`` that differs from the installed version.

    The local part of a version (``2.9.1+cpu``) is ignored.
    """
    differing = []
    for pin in sorted(set(pins)):
        name, _, pinned_version = pin.partition("==")
        try:
            installed = version(name).partition("+")[0]
        except PackageNotFoundError:  # importing it will fail
            continue
        if installed != pinned_version:
            differing.append(f"{name} {installed} in place of {pinned_version}")
    return differing


@cache
def _pins(text: str) -> dict[str, str]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    pairs = (line.split("==") for line in lines if line)
    return {canonicalize_name(name): version for name, version in pairs}
