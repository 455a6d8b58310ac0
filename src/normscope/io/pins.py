"""Which pinned packages a result depends on: those that its files import, and what they need."""

import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from normscope.io.provenance import imported

# packages that are installed under another name than that of their module
INSTALLED_AS = {"markdown_it": "markdown-it-py", "yaml": "pyyaml"}


def pinned(files: Iterable[Path], constraints: Path) -> str:
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
        for module in imported(path) - sys.stdlib_module_names - {"normscope"}:
            name = canonicalize_name(INSTALLED_AS.get(module, module))
            if name not in pins:
                raise ValueError(f"{path} imports {module}, which {constraints} does not pin")
            needed |= required(name)
    return " ".join(f"{name}=={pins[name]}" for name in sorted(needed & pins.keys()))


@cache
def required(name: str) -> frozenset[str]:
    """A package and, transitively, all that it requires on this machine, without extras."""
    packages: set[str] = set()
    todo = [name]
    while todo:
        package = todo.pop()
        if package in packages:
            continue
        packages.add(package)
        try:
            metadata = distribution(package).read_text("METADATA") or ""
        except PackageNotFoundError:  # required by a pinned one, and not installed
            continue
        # the attribute ``requires`` is slower: it parses the readme, too
        fields = (line.partition(": ") for line in metadata.partition("\n\n")[0].splitlines())
        requires = [text for name, _, text in fields if name == "Requires-Dist"]
        wanted = [Requirement(text) for text in requires if "extra ==" not in text]
        todo += [
            canonicalize_name(r.name) for r in wanted if r.marker is None or r.marker.evaluate()
        ]
    return frozenset(packages)


def not_as_pinned(pins: Iterable[str]) -> list[str]:
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
