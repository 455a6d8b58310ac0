"""What files import, also lazily, found by Python's modulefinder in their byte code.

The workflow reads syntax trees instead (``normscope.io.provenance``).
"""

import importlib.util
import modulefinder
import sys
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from project import ROOT

DOOR = "src/normscope/__init__.py"  # for users; it imports lazily and determines no result


class Imports(modulefinder.ModuleFinder):
    """A finder that follows modules of this project and records others by name."""

    def __init__(self) -> None:
        super().__init__([str(ROOT / "src")])

    def load_module(self, fqname, fp, pathname, file_info):
        if fp is None:
            return super().load_module(fqname, fp, pathname, file_info)
        module: Any = self.add_module(fqname)
        module.__file__ = pathname
        module.__code__ = _compiled(fqname, pathname)
        self.scan_code(module.__code__, module)
        return module


@cache
def _compiled(name: str, path: str) -> CodeType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    code = spec.loader.get_code(name)  # type: ignore[attr-defined]
    assert code is not None
    return code


@cache
def imported(*files: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Files of src/ and packages of others that files import, and what these files import."""
    finder = Imports()
    for file in files:
        finder.run_script(str(file))
    modules: list[Any] = list(finder.modules.values())
    paths = [Path(m.__file__) for m in modules if m.__file__]
    paths += files
    # a script loads a module of a study by name, and Python imports the packages around it first
    package = ROOT / "src/normscope"
    around = {folder for file in files for folder in file.parents if folder.is_relative_to(package)}
    paths += [folder / "__init__.py" for folder in around]
    ours = {str(path.relative_to(ROOT)) for path in paths if path.is_relative_to(ROOT / "src")}
    others = {name.partition(".")[0] for name in finder.any_missing()}
    return frozenset(ours - {DOOR}), frozenset(
        others - set(sys.stdlib_module_names) - {"normscope"}
    )
