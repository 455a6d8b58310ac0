"""The history of verdicts only grows, and nothing exploratory is called confirmatory.

A shallow clone, or a copy without Git, has no history to compare with: those tests are skipped,
and fail where CI is set.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from needed import need
from processes import ROOT
from statements import CLAIMS

from normscope.config import load
from normscope.errors import Explained
from normscope.io.git import git
from normscope.ledger.entry import Claims
from normscope.ledger.frozen import (
    Frozen,
    Registry,
    digest_of_cases,
    read_frozen,
    read_history,
    read_registry,
    read_seen,
)
from normscope.paper.statements import shown_verdict
from normscope.pilot import read_project
from normscope.studies.statements import digests_of
from normscope.studies.verdicts import unkept, verdicts

HISTORY, FROZEN, LEDGER, SEEN = (
    f"evidence/{name}" for name in ("history.jsonl", "frozen.json", "claims.json", "seen.yaml")
)
LINES = read_history(ROOT / HISTORY)
KEPT = json.loads((ROOT / LEDGER).read_text())


@pytest.fixture
def _whole_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    try:
        is_whole = git("rev-parse", "--is-shallow-repository") == "false"
    except Explained:
        is_whole = False
    need(is_whole, "the history of Git is missing or incomplete: git fetch --unshallow gets it")


@pytest.mark.usefixtures("_whole_history")
def test_the_history_of_verdicts_only_grows():
    now = (ROOT / HISTORY).read_text()
    for commit in git("log", "--full-history", "--format=%H", "--", HISTORY).splitlines():
        before = git("show", f"{commit}:{HISTORY}")
        assert now.startswith(before), f"{commit} has lines that were changed or removed"


@pytest.mark.usefixtures("_whole_history")
def test_seeds_that_were_seen_stay_seen(tmp_path: Path):
    now = {seed for one in read_seen(ROOT / SEEN) for seed in one.seeds}
    for commit in git("log", "--full-history", "--format=%H", "--", SEEN).splitlines():
        before = tmp_path / "seen.yaml"
        before.write_text(git("show", f"{commit}:{SEEN}"))
        assert {seed for one in read_seen(before) for seed in one.seeds} <= now, commit


@pytest.mark.usefixtures("_whole_history")
def test_every_line_is_a_verdict_of_its_commit_or_of_the_next_ledger():
    for commit in {line.commit for line in LINES}:
        # on branches that were merged, each has its next ledger
        later = git("rev-list", "--parents", "--full-history", f"{commit}..HEAD", "--", LEDGER)
        parents = {one: set(before) for one, *before in map(str.split, later.splitlines())}
        following = [one for one, before in parents.items() if not before & parents.keys()]
        ledgers = [git("show", f"{one}:{LEDGER}") for one in (commit, *following)]
        verdicts = {
            (claim["key"], claim["verdict"], claim["n"])
            for ledger in (*ledgers, json.dumps(KEPT))
            for claim in json.loads(ledger)["claims"]
        }
        for line in LINES:
            if line.commit == commit:
                assert (line.statement, line.verdict, line.n) in verdicts


@pytest.mark.usefixtures("_whole_history")
def test_what_is_frozen_was_a_commit_before_its_verdicts():
    if not (ROOT / FROZEN).exists():
        assert KEPT["frozen"] is None
        return
    frozen = read_frozen(ROOT / FROZEN)
    freeze = git("log", "-1", "--format=%H", "--", FROZEN)
    git("merge-base", "--is-ancestor", frozen.commit, freeze)
    for line in LINES:
        if line.frozen == frozen.commit:
            git("merge-base", "--is-ancestor", freeze, line.commit)


def reads_published(claim: dict[str, Any]) -> bool:
    """Whether a reading is of published data, which have no seeds and are older than any test."""
    return any(reading["unit"] == "prompt" for reading in claim["readings"].values())


def mislabelled(claims: list[dict[str, Any]], registry: Registry) -> list[str]:
    """The statements that the ledger or its pages do not mark as the registry does."""
    wrong = []
    for claim in claims:
        is_formula = all(r["unit"] == "formula" for r in claim["readings"].values())
        is_deterministic = is_formula and not claim["seeds"]
        judged = claim["key"], claim["seeds"], digest_of_cases(claim["readings"])
        is_confirmed = registry.is_confirmed(*judged)
        seeds = [] if reads_published(claim) else claim["seeds"]
        why = registry.why_exploratory(claim["key"], seeds)
        why = why or "another result" * registry.is_another(*judged)
        why = "" if is_deterministic or is_confirmed else why
        is_marked = "(exploratory)" in shown_verdict(claim)
        if (claim["status"] == "exploratory", is_marked) != (bool(why), bool(why)):
            wrong.append(claim["key"])
    return wrong


def test_the_kept_ledger_and_its_pages_call_no_exploratory_verdict_confirmatory():
    """Recomputed from the present entries: a bound that is changed now makes a verdict so."""
    registry = read_registry(ROOT / "evidence", digests_of(CLAIMS), KEPT["settings"])
    assert mislabelled(KEPT["claims"], registry) == []
    for claim in KEPT["claims"]:
        assert claim["digest"] == registry.digests[claim["key"]], (
            f"{claim['key']}: its test differs from the one by which evidence/ was judged"
        )


def test_a_bound_that_is_changed_after_the_run_is_found_on_the_pages():
    settings, before = "1" * 64, digests_of(CLAIMS)
    frozen = Frozen(commit="a" * 40, settings={"paper.yaml": settings}, statements=before)
    of_models = [c for c in KEPT["claims"] if c["seeds"] and not reads_published(c)]
    claims = [c | {"status": "confirmatory"} for c in of_models]
    assert mislabelled(claims, Registry(before, frozen, settings=settings)) == []
    document = CLAIMS.documents["tutorial"]
    entry = document.claims["post_warm_up"]
    readings = {name: r.model_copy(update={"bound": 0.5}) for name, r in entry.readings.items()}
    changed = {**document.claims, "post_warm_up": entry.model_copy(update={"readings": readings})}
    whole = document.model_copy(update={"statements": changed})
    now = Claims({**CLAIMS.documents, "tutorial": whole})
    registry = Registry(digests_of(now), frozen, settings=settings)
    assert mislabelled(claims, registry) == ["post_warm_up"]


def test_the_kept_ledger_follows_from_the_kept_tables():
    """Every case, verdict, p-value and word, of the statements whose tables are kept."""
    run = load(read_project(ROOT, ROOT / "config/paper.yaml"))
    folders = {name: ROOT / "evidence" / name for name in run.studies}
    lacking = unkept(CLAIMS, run.studies, folders)
    registry = Registry(digests_of(CLAIMS))
    now = json.loads(json.dumps(verdicts(CLAIMS, run.studies, run.level, folders, registry)))
    kept = {claim["key"]: claim for claim in KEPT["claims"]}
    assert kept.keys() == {claim["key"] for claim in now["claims"]}
    partial = {claim["document"] for claim in now["claims"] if claim["key"] in lacking}
    for claim in now["claims"]:
        before = kept[claim["key"]]
        if claim["key"] in lacking:
            continue
        for name, reading in claim["readings"].items():
            assert reading["cases"] == before["readings"][name]["cases"], (claim["key"], name)
        assert (claim["p"], claim["seeds"]) == (before["p"], before["seeds"]), claim["key"]
        if claim["document"] not in partial:  # the others lack tests of their family
            of_freeze = ("status", "exploratory_because")  # the registry above has none
            kept_words = before | {name: claim[name] for name in of_freeze}
            assert claim == kept_words, "words changed: python scripts/evidence.py --judge"
