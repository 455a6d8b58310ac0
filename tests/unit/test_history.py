"""The history of verdicts only grows, and nothing exploratory is called confirmatory.

A shallow clone, or a copy without Git, has no history to compare with: those tests are skipped.
"""

import json
from pathlib import Path

import pytest
from processes import ROOT
from statements import CLAIMS

from normscope.config import Studies
from normscope.errors import Explained
from normscope.io.git import git
from normscope.ledger.frozen import Registry, read_frozen, read_history, read_registry, read_seen
from normscope.paper.statements import shown_verdict
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
    if not is_whole:
        pytest.skip("the history of Git is missing or incomplete: git fetch --unshallow gets it")


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
        later = git("log", "--reverse", "--format=%H", f"{commit}..HEAD", "--", LEDGER)
        ledgers = [git("show", f"{one}:{LEDGER}") for one in (commit, *later.splitlines()[:1])]
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


def test_the_kept_ledger_and_its_pages_call_no_exploratory_verdict_confirmatory():
    """Recomputed from the present entries: a bound that is changed now makes a verdict so."""
    registry = read_registry(ROOT / "evidence", digests_of(CLAIMS), KEPT["settings"])
    for claim in KEPT["claims"]:
        is_formula = all(r["unit"] == "formula" for r in claim["readings"].values())
        is_deterministic = is_formula and not claim["seeds"]
        why = "" if is_deterministic else registry.why_exploratory(claim["key"], claim["seeds"])
        if why:
            assert claim["status"] == "exploratory", claim["key"]
        assert ("(exploratory)" in shown_verdict(claim)) == bool(why)
        assert claim["digest"] == registry.digests[claim["key"]], (
            f"{claim['key']}: its test differs from the one by which evidence/ was judged"
        )


def test_the_kept_ledger_follows_from_the_kept_tables():
    """Every case, verdict and p-value, of the statements whose tables are kept."""
    config = json.loads((ROOT / "evidence/manifest.json").read_text())["config"]
    run = Studies.model_validate({k: v for k, v in config.items() if k != "figures"})
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
            assert (claim["verdict"], claim["p_holm"]) == (before["verdict"], before["p_holm"])
