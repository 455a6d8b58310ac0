"""Which pinned packages decide a result: those that its files import, and what these require."""

import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from packaging.requirements import Requirement

from normscope.io.provenance import imported

# packages that are imported by another name than they are installed by
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
            name = normalized(INSTALLED_AS.get(module, module))
            if name not in pins:
                raise ValueError(f"{path} imports {module}, which {constraints} does not pin")
            needed |= required(name)
    return " ".join(f"{name}=={pins[name]}" for name in sorted(needed & pins.keys()))


def normalized(name: str) -> str:
    """A package's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def required(name: str) -> frozenset[str]:
    """The package and all that it requires here, as its metadata say; extras are left out."""
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
        # ``requires`` would parse the whole, with the package's readme, at each start
        fields = (line.partition(": ") for line in metadata.partition("\n\n")[0].splitlines())
        requires = [text for name, _, text in fields if name == "Requires-Dist"]
        wanted = [Requirement(text) for text in requires if "extra ==" not in text]
        todo += [normalized(r.name) for r in wanted if r.marker is None or r.marker.evaluate()]
    return frozenset(packages)


def not_as_pinned(pins: Iterable[str]) -> list[str]:
    """Of ``name==version``: packages whose installed version is another, as a phrase each.

    A local version (``2.9.1+cpu``) counts as what it is built from.
    """
    differing = []
    for pin in sorted(set(pins)):
        name, _, pinned_version = pin.partition("==")
        try:
            installed = version(name).partition("+")[0]
        except PackageNotFoundError:  # an import of it will say so
            continue
        if installed != pinned_version:
            differing.append(f"{name} {installed} in place of {pinned_version}")
    return differing


@cache
def _pins(text: str) -> dict[str, str]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    pairs = (line.split("==") for line in lines if line)
    return {normalized(name): version for name, version in pairs}
