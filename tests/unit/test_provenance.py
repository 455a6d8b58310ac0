"""Which files decide a result: as many as Python imports, and their content alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from normscope.io.provenance import PACKAGE, closure, digest

SCRIPTS = sorted((Path(__file__).parents[2] / "scripts").glob("*.py"))

IMPORTED = """
import json, runpy, sys

found = {}
for script in sys.argv[1:]:
    for name in [n for n in sys.modules if n.split(".")[0] == "normscope"]:
        del sys.modules[name]
    runpy.run_path(script)
    found[script] = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "normscope"]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    """The files of this package that Python loads for each script."""
    command = [sys.executable, "-c", IMPORTED, *map(str, SCRIPTS)]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_closure_is_what_python_imports(imported, script):
    assert closure(script) == [script, *sorted(map(Path, imported[str(script)]))]


@pytest.mark.parametrize(
    "statement",
    [
        "import normscope.statistics.estimate",
        "from normscope import stats",
        "from normscope.statistics.estimate import estimate",
        "def f():\n    from normscope.statistics.estimate import estimate",
    ],
)
def test_every_way_to_import_is_seen(tmp_path, statement):
    script = tmp_path / "script.py"
    script.write_text(f"import math\n{statement}\n")
    assert closure(script) == [script, PACKAGE / "__init__.py", PACKAGE / "stats.py"]


RECIPES = ["recall/__init__.py", "recall/recipe.py", "recipe.py"]


@pytest.mark.parametrize(
    ("statement", "files"),
    [
        ("import normscope.studies.recall.recipe", RECIPES),
        ("from normscope.studies.recall import recipe", RECIPES),
        ("from normscope.studies.recall.recipe import Task", RECIPES),
        ("import normscope.studies.recall", ["recall/__init__.py"]),
        ("from normscope import recall", ["recall/__init__.py"]),
        ("import normscope", []),
        ("import normscope_other.recall, numpy.recall", None),
    ],
)
def test_a_subpackage_comes_with_its_init_and_what_it_imports(tmp_path, statement, files):
    script = tmp_path / "script.py"
    script.write_text(f"{statement}\n")
    expected = [] if files is None else sorted(PACKAGE / f for f in ["__init__.py", *files])
    assert closure(script) == [script, *expected]


def test_a_script_depends_on_every_module_of_a_subpackage_that_it_imports():
    recall, train = (next(p for p in SCRIPTS if p.stem == name) for name in ("recall", "train"))
    for name in ("model", "recipe", "tasks", "training"):
        assert PACKAGE / "recall" / f"{name}.py" in closure(recall)
        assert PACKAGE / "recall" / f"{name}.py" not in closure(train)
    for other in ("recall/measure.py", "recall/grid.py", "arms.py", "config.py", "sharpness.py"):
        assert PACKAGE / other not in closure(recall)


def test_a_module_that_is_not_imported_is_left_out():
    train = next(p for p in SCRIPTS if p.stem == "train")
    assert PACKAGE / "arms.py" not in closure(train)
    assert PACKAGE / "config.py" not in closure(train)
    assert PACKAGE / "norms.py" in closure(train)


@pytest.fixture
def files(tmp_path) -> list[Path]:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text(path.name)
    return paths


def test_digest_changes_with_any_content(files):
    before = digest(files)
    for path in files:
        path.write_text("c")
        after = digest(files)
        assert after != before
        before = after


def test_digest_changes_with_the_border_between_files(files):
    before = digest(files)
    files[0].write_text("ab")
    files[1].write_text("")
    assert digest(files) != before


def test_digest_does_not_change_with_time_and_place(files, tmp_path):
    before = digest(files)
    os.utime(files[0], (0, 0))
    moved = [path.rename(tmp_path / f"moved {path.name}") for path in files]
    assert digest(moved) == before
