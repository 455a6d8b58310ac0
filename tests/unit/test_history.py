"""Statements whose test was changed after its data were seen are marked, by the history in Git.

A shallow clone, or a copy without Git, has no history to compare with: they are skipped there.
Tests that are functions are compared by their entries alone.
"""

import json
import subprocess
from functools import cache
from typing import Any

import pytest
import yaml
from processes import ROOT

MODELS, LEDGER = "evidence/models.csv", "evidence/claims.json"
FOLDER, ONE_FILE = "data/claims", "data/claims.yaml"  # one file held all documents before
OF_A_TEST = "study primary test direction holds_in bound margin scale unit contrast".split()


def git(*words: str) -> str:
    return subprocess.run(
        ("git", *words), cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture(autouse=True, scope="module")
def _history() -> None:
    try:
        is_whole = git("rev-parse", "--is-shallow-repository").strip() == "false"
    except (OSError, subprocess.CalledProcessError):
        is_whole = False
    if not is_whole:
        pytest.skip("there is no history here, or a part of it: git fetch --unshallow gets it")


@cache
def statements(commit: str | None = None) -> dict[str, dict[str, Any]]:
    """The entries as a commit has them, or the working tree."""
    if commit is None:
        texts = [path.read_text() for path in (ROOT / FOLDER).glob("*.yaml")]
    else:
        files = git("ls-tree", "-r", "--name-only", commit, FOLDER, ONE_FILE).splitlines()
        texts = [git("show", f"{commit}:{name}") for name in files if name.endswith(".yaml")]
    return {key: entry for text in texts for key, entry in yaml.safe_load(text)["claims"].items()}


def decisive(entry: dict[str, Any]) -> dict[str, Any]:
    """What of an entry decides its verdict: none of the words."""
    test = {key: entry.get(key) for key in OF_A_TEST}
    if test["contrast"]:
        test["contrast"] = {k: v for k, v in test["contrast"].items() if k != "sentence"}
    return test


def marks() -> dict[str, dict[str, Any]]:
    return {key: e["changed_after"] for key, e in statements().items() if "changed_after" in e}


def test_a_test_that_differs_from_the_one_at_its_data_is_marked():
    at_data = statements(git("log", "-1", "--format=%H", "--", MODELS).strip())
    both = statements().keys() & at_data.keys()
    changed = {key for key in both if decisive(statements()[key]) != decisive(at_data[key])}
    assert changed - marks().keys() == set()


@pytest.mark.parametrize("key", marks())
def test_a_mark_says_what_its_commit_changed_and_the_verdict_before(key: str):
    mark = marks()[key]
    before = f"{mark['commit']}^"
    assert decisive(statements(before)[key]) != decisive(statements(mark["commit"])[key])
    git("cat-file", "-e", f"{before}:{MODELS}")  # its data were there
    ledger = json.loads(git("show", f"{before}:{LEDGER}"))
    assert {c["key"]: c["verdict"] for c in ledger["claims"]}[key] == mark["was"]


def test_the_evidence_has_the_marks():
    ledger = json.loads((ROOT / LEDGER).read_text())
    kept = {c["key"]: c["changed_after"] for c in ledger["claims"] if c["changed_after"]}
    assert kept == marks()
