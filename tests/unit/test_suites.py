"""Every test belongs to a suite of tests/suites.yaml, and CI runs a part of every suite."""

import re
import subprocess
import sys
import tomllib
from collections import Counter

import pytest
import yaml
from processes import ROOT
from suites import Suite, load, part_of, sample

SUITES = load()
RUN = (ROOT / ".ci/run").read_text()
END_TO_END = (ROOT / ".ci/end-to-end").read_text()


def recipes() -> dict[str, str]:
    """What the Makefile runs for each target of tests."""
    makefile = (ROOT / "Makefile").read_text()
    return dict(re.findall(r"^(test[\w-]*):.*\n((?:\t.*\n)+)", makefile, re.MULTILINE))


def collected(recipe: str) -> list[str]:
    """The folders and files that a recipe gives to pytest; without one, those of pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    return re.findall(r"\btests/[\w./]+", recipe) or settings["ini_options"]["testpaths"]


def test_every_folder_of_tests_and_every_target_belongs_to_a_suite():
    folders = {path.relative_to(ROOT).parts[1] for path in (ROOT / "tests").rglob("test_*.py")}
    assert folders == {path.split("/")[1] for suite in SUITES.values() for path in suite.tests}
    targets = Counter(f"make {target}" for target in recipes())
    targets[".ci/end-to-end"] = 1
    assert targets == Counter(suite.run for suite in SUITES.values())


@pytest.mark.parametrize("name", [n for n, s in SUITES.items() if s.run.startswith("make ")])
def test_a_suite_is_what_its_target_runs(name: str):
    suite = SUITES[name]
    recipe = recipes()[suite.run.removeprefix("make ")]
    assert collected(recipe) == list(suite.tests)
    assert suite.ci in ("whole", "collected") or "--part $(PART)" in recipe


def test_ci_runs_every_suite():
    lines = re.findall(r"^(?:start )?suite ([^#\n]+)", RUN, re.MULTILINE)
    named = [name for line in lines for name in line.split()]
    inside = [name for name, suite in SUITES.items() if suite.run.split()[-1] in END_TO_END.split()]
    assert Counter([*named, *inside]) == Counter(SUITES.keys())


def test_the_published_faults_are_of_the_whole_paper_and_were_survived():
    made = yaml.safe_load((ROOT / "docs/faults.yaml").read_text())
    assert made["target"] == "paper"
    kills = [n["injected"] for name, n in made["faults"].items() if name.startswith("SIGKILL")]
    assert sum(kills) >= 200
    assert {"SIGKILL of a training", "SIGKILL of another job"} <= made["faults"].keys()
    assert [name for name, n in made["faults"].items() if n["injected"] != n["survived"]] == []


@pytest.mark.parametrize("name", ["sharing", "faults"])
def test_no_part_of_a_suite_is_empty(name):
    """pytest fails if it runs no test. The other suite in parts has hundreds of tests."""
    suite = SUITES[name]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *suite.tests]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = re.findall(r"^tests/\S+: (\d+)$", listed, re.MULTILINE)
    assert sum(map(int, files)) >= int(suite.ci.removeprefix("1/"))


def test_every_test_is_in_one_part_and_every_part_has_its_turn():
    names = [f"tests/test_a.py::test_{i}" for i in range(23)]
    parts = [part_of(names, f"{k}/5") for k in range(1, 6)]
    assert Counter(name for part in parts for name in part) == Counter(names)
    suite = Suite(protects="", run="make test-x", takes="", ci="1/5", smaller="KILLS=1")
    trees = [f"{i * 2654435761 % 2**32:08x}{'0' * 32}" for i in range(1000)]
    drawn = Counter(sample(suite, tree) for tree in trees)
    assert drawn.keys() == {f"make test-x PART={k}/5 KILLS=1" for k in range(1, 6)}
