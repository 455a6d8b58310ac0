"""Digests of code and data, and pinned packages."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from processes import ROOT, SCRIPTS

from normscope.io.pins import pins_of
from normscope.io.provenance import PACKAGE, closure, code_digest, digest

FILES = sorted(SCRIPTS.rglob("*.py"))
DOOR = PACKAGE / "__init__.py"  # for users; it loads no module

IMPORTED = """
import json, runpy, sys

loaded = {}
for script in sys.argv[1:]:
    for name in [n for n in sys.modules if n.split(".")[0] == "normscope"]:
        del sys.modules[name]
    runpy.run_path(script)
    loaded[script] = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "normscope"]
print(json.dumps(loaded))
"""


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    """The files of this package that Python loads for each script."""
    command = [sys.executable, "-c", IMPORTED, *map(str, FILES)]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.mark.parametrize("script", FILES, ids=lambda p: p.stem)
def test_closure_is_what_python_imports(imported, script):
    modules = {Path(file) for file in imported[str(script)]} - {DOOR}
    assert closure(script) == [script, *sorted(modules)]


PARTS = ["statistics/__init__.py", "statistics/estimate.py"]


@pytest.mark.parametrize(
    ("statement", "files"),
    [
        ("import normscope.statistics.estimate", PARTS),
        ("from normscope.statistics import estimate", PARTS),
        ("from normscope.statistics.estimate import estimate", PARTS),
        ("def f():\n    from normscope.statistics.estimate import estimate", PARTS),
        # what it imports itself comes with it
        ("import normscope.statistics.factorial", [*PARTS, "statistics/factorial.py"]),
        ("from normscope import statistics", PARTS[:1]),
        ("import normscope", []),
        ("import normscope_other.statistics, numpy.statistics", []),
    ],
)
def test_every_way_to_import_is_seen(tmp_path, statement, files):
    script = tmp_path / "script.py"
    script.write_text(f"import math\n{statement}\n")
    assert closure(script) == [script, *sorted(PACKAGE / file for file in files)]


CODE = '"""What it does."""\n\nX = 1\n\n\ndef f(a):\n    """It adds."""\n    return a + X\n'


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("X = 1\n", "X = 1  # one\n", False),
        ("It adds.", "It adds X.", False),
        ("\n\n\ndef", "\n\ndef", False),
        ("X = 1\n", 'X = 1\n"""One."""\n', False),
        ("a + X", "X + a", True),
        ("X = 1", "X = 1.0", True),
        ("return a + X", 'return a + X, "a string that is used"', True),
    ],
)
def test_statements_count_and_comments_docstrings_and_layout_do_not(tmp_path, old, new, changes):
    assert old in CODE
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    for path, text in zip(paths, (CODE, CODE.replace(old, new)), strict=True):
        path.write_text(text)
    first, other = (code_digest([path]) for path in paths)
    assert (first != other) == changes


@pytest.mark.parametrize("measure", [digest, code_digest])
def test_a_digest_is_of_files_in_order_whatever_their_time_and_place(measure, tmp_path):
    digests = {}
    for name, texts in {
        "first": ("a = 1", "b = 1"),
        "moved": ("a = 1", "b = 1"),
        "swapped": ("b = 1", "a = 1"),
        "changed": ("c = 1", "b = 1"),
        "joined": ("a = 1\nb = 1", ""),
    }.items():
        paths = [tmp_path / f"{name} {i}" for i in range(2)]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
            os.utime(path, (0, len(digests)))
        digests[name] = measure(paths)
    assert digests.pop("moved") == digests["first"]
    assert len(set(digests.values())) == len(digests)


DIGEST = """
import sys
from pathlib import Path
from normscope.io.provenance import code_digest, load_facts, save_facts

memory, source = map(Path, sys.argv[1:])
load_facts(memory)
print(code_digest([source]))
save_facts(memory)
"""


@pytest.mark.parametrize(
    ("changes", "is_used"),
    [
        ({}, True),
        ({"python": "another"}, False),
        ({"facts": {"0": []}}, False),
        ({"facts": []}, False),
        (None, False),  # a damaged file
    ],
)
def test_saved_facts_are_used_for_the_source_that_they_are_of(tmp_path, changes, is_used):
    memory, source = tmp_path / "memory.json", tmp_path / "a.py"
    source.write_text("x = 1\n")

    def run() -> str:
        command = [sys.executable, "-c", DIGEST, str(memory), str(source)]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()

    true = run()
    saved = json.loads(memory.read_text())
    saved["facts"] = {key: ["00" * 32, names] for key, (_, names) in saved["facts"].items()}
    memory.write_text("{" if changes is None else json.dumps(saved | changes))
    used = run()
    assert (used != true) == is_used
    source.write_text("x = 2\n")
    assert run() not in (true, used)


CONSTRAINTS = ROOT / "constraints.txt"


def pins(script: str, *modules: str) -> dict[str, str]:
    files = [ROOT / "scripts" / f"{script}.py", *(ROOT / "src/normscope" / m for m in modules)]
    line = pins_of(closure(*files), CONSTRAINTS)
    return dict(pin.split("==") for pin in line.split())


@pytest.mark.parametrize("script", ["train", "residual_gain", "dataset"])
def test_every_package_that_a_script_loads_is_among_its_pins(script):
    """Python itself says what is imported; the syntax trees and metadata must have said so."""
    code = f"import runpy, sys; runpy.run_path('scripts/{script}.py'); print(*sys.modules)"
    env = {"PYTHONPATH": "src", "PATH": ""}
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    tops = {name.partition(".")[0] for name in process.stdout.split()}
    installed = packages_distributions()
    loaded = {canonicalize_name(d) for top in tops for d in installed.get(top, [])} - {"normscope"}
    # torch and its networkx import these if they are installed
    known = {
        canonicalize_name(line.split("==")[0]) for line in CONSTRAINTS.read_text().splitlines()[1:]
    }
    optional = {"pydot", "tqdm"}
    assert loaded & known - optional <= pins(script).keys()
    assert len(loaded) >= 4


def test_pins_are_those_of_the_file(tmp_path):
    script, constraints = tmp_path / "s.py", tmp_path / "c.txt"
    script.write_text("def f():\n    if f:\n        from tqdm.auto import tqdm\n")
    constraints.write_text("# head\nTQDM==9.8 # why\nNumPy==1.2\n\n")
    assert pins_of([script], constraints) == "tqdm==9.8"
    other = tmp_path / "other.py"
    other.write_text("import json, numpy\n")
    assert pins_of([other], constraints) == "numpy==1.2"
    third = tmp_path / "third.py"
    third.write_text("import requests\n")
    with pytest.raises(ValueError, match=re.escape(f"{third} imports requests, which")):
        pins_of([third], constraints)
