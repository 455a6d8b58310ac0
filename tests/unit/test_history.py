"""The history of verdicts only grows, and nothing exploratory is called confirmatory.

A shallow clone, or a copy without Git, has no history to compare with: those tests are skipped.
"""

import json

import pytest
from processes import ROOT
from statements import CLAIMS

from normscope.config import Studies
from normscope.errors import Explained
from normscope.io.git import git
from normscope.io.tables import Tables
from normscope.ledger.claim import Evidence
from normscope.ledger.entry import Claims
from normscope.ledger.frozen import Registry, read_frozen, read_history
from normscope.ledger.judgement import find_all, judge
from normscope.ledger.record import record
from normscope.paper.statements import shown_verdict
from normscope.studies.statements import digests_of

HISTORY, FROZEN, LEDGER = (
    f"evidence/{name}" for name in ("history.jsonl", "frozen.json", "claims.json")
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
    frozen = read_frozen(ROOT / FROZEN) if (ROOT / FROZEN).exists() else None
    registry = Registry(digests_of(CLAIMS), frozen, LINES)
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


# their tables are too large to keep, and they are deterministic or their family has no other test
UNKEPT = {"true_last_block", "shares_give_cosines", "consistent", "h25", "norms_decide"}


def test_the_kept_ledger_follows_from_the_kept_tables():
    """Every case, verdict and p-value, whose tables are kept."""
    config = json.loads((ROOT / "evidence/manifest.json").read_text())["config"]
    studies = Studies.model_validate({k: v for k, v in config.items() if k != "figures"}).studies
    tables = {name: Tables(ROOT / "evidence" / name, s.TABLES) for name, s in studies.items()}
    documents = {
        name: document.model_copy(
            update={"claims": {k: e for k, e in document.claims.items() if k not in UNKEPT}}
        )
        for name, document in CLAIMS.documents.items()
    }
    found = find_all(Claims(documents), Evidence(tables, studies, KEPT["level"]))
    kept = {claim["key"]: claim for claim in KEPT["claims"]}
    for judgement in judge(found, 1 - KEPT["level"]):
        now = json.loads(json.dumps(record(judgement, Registry(digests_of(CLAIMS), None, []))))
        before = kept[now["key"]]
        for name, reading in now["readings"].items():
            assert reading["cases"] == before["readings"][name]["cases"], (now["key"], name)
        assert (now["p"], now["seeds"]) == (before["p"], before["seeds"]), now["key"]
        if judgement.claim.document not in ("final_norm", "gpt2"):  # families that are whole
            assert (now["verdict"], now["p_holm"]) == (before["verdict"], before["p_holm"])
