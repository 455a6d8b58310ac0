"""Which files decide a result: as many as Python imports, and what their code does alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import SCRIPTS

from normscope.io import provenance
from normscope.io.provenance import PACKAGE, closure, code_digest, digest

FILES = sorted(SCRIPTS.rglob("*.py"))
DOOR = PACKAGE / "__init__.py"  # for users: it must load nothing by itself

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


def test_several_files_are_closed_together(tmp_path):
    script, module = tmp_path / "script.py", PACKAGE / "statistics/estimate.py"
    script.write_text("from normscope import io\n")
    packages = [PACKAGE / "io/__init__.py", PACKAGE / "statistics/__init__.py"]
    assert closure(script, module) == [script, module, *packages]


def test_to_import_the_package_loads_none_of_its_modules():
    code = "import sys, normscope; print(*(n for n in sys.modules if n.startswith('normscope.')))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stdout.split() == []


def test_a_module_that_is_not_imported_is_left_out():
    train = closure(SCRIPTS / "train.py", PACKAGE / "studies/main/train.py")
    assert PACKAGE / "nn/norms.py" in train
    for other in ("nn/arms.py", "config.py", "studies/recall/model.py", "measure/sharpness.py"):
        assert (PACKAGE / other).is_file()
        assert PACKAGE / other not in train


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
def test_what_code_does_counts_and_comments_docstrings_and_layout_do_not(
    tmp_path, old, new, changes
):
    assert old in CODE
    paths = [tmp_path / "a.py", tmp_path / "b.py"]
    for path, text in zip(paths, (CODE, CODE.replace(old, new)), strict=True):
        path.write_text(text)
    first, other = (code_digest([path]) for path in paths)
    assert (first != other) == changes


@pytest.mark.parametrize("measure", [digest, code_digest])
def test_a_digest_is_of_files_in_order_whatever_their_time_and_place(measure, tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text(f"{path.name} = 1\n")
    before = measure(paths)
    os.utime(paths[0], (0, 0))
    moved = [path.rename(tmp_path / f"moved {path.name}") for path in paths]
    assert measure(moved) == before
    assert measure(moved[::-1]) != before
    (tmp_path / "c").write_text("c = 1\n")
    assert measure([tmp_path / "c", moved[1]]) != before


def test_a_digest_changes_with_the_border_between_files(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    digests = set()
    for texts in (("ab", ""), ("a", "b")):
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        digests.add(digest(paths))
    assert len(digests) == 2


def start_anew(monkeypatch) -> None:
    """As in a new process, which has read nothing."""
    for table in ("_used", "_restored"):
        monkeypatch.setattr(provenance, table, {})
    provenance._facts.cache_clear()
    provenance._imports.cache_clear()


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """A cache of all scripts' facts, as a process writes it that has parsed them."""
    start_anew(monkeypatch)
    for script in FILES:
        code_digest(closure(script))
    provenance.save(tmp_path / "cache")
    start_anew(monkeypatch)
    return tmp_path / "cache"


def parsed(monkeypatch) -> list[bytes]:
    """The contents of the files that are parsed from now on."""
    contents: list[bytes] = []
    read = provenance._read
    monkeypatch.setattr(provenance, "_read", lambda raw: (contents.append(raw), read(raw))[1])
    return contents


def test_a_file_in_the_cache_is_not_parsed_and_has_the_same_facts(cache, monkeypatch):
    contents = parsed(monkeypatch)
    provenance.restore(cache)
    restored = [(closure(script), code_digest(closure(script))) for script in FILES]
    assert contents == []
    start_anew(monkeypatch)
    assert restored == [(closure(script), code_digest(closure(script))) for script in FILES]
    assert contents


def test_a_changed_file_is_parsed_whatever_the_cache_says(cache, tmp_path, monkeypatch):
    contents = parsed(monkeypatch)
    provenance.restore(cache)
    changed = tmp_path / FILES[0].name
    changed.write_bytes(FILES[0].read_bytes() + b"\nCHANGED = 1\n")
    assert code_digest([changed]) != code_digest([FILES[0]])
    assert contents == [changed.read_bytes()]


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw.replace(b"normscope.io", b"normscope.nn", 1),  # other facts, valid JSON
        lambda raw: b"\xff" + raw,
        lambda raw: b"",
    ],
)
def test_a_damaged_cache_is_ignored(cache, monkeypatch, damage):
    contents = parsed(monkeypatch)
    cache.write_bytes(damage(cache.read_bytes()))
    provenance.restore(cache)
    code_digest([FILES[0]])
    assert contents == [FILES[0].read_bytes()]
