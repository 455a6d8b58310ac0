"""The kept ledger follows from the kept tables, the present tests and what was registered."""

import json

from processes import ROOT
from statements import CLAIMS

from normscope.config import load
from normscope.pilot import read_project
from normscope.studies.statements import digests_of
from normscope.studies.verdicts import unkept, verdicts
from normscope.verdicts.frozen import Plan, read_frozen

KEPT = json.loads((ROOT / "evidence/claims.json").read_text())


def test_the_kept_ledger_follows_from_the_kept_tables():
    """Every case, verdict, p-value, mark and word, of the statements whose tables are kept."""
    run = load(read_project(ROOT, ROOT / "config/paper.yaml"))
    folders = {name: ROOT / "evidence" / name for name in run.studies}
    lacking = unkept(CLAIMS, run.studies, folders)
    plan = Plan(digests_of(CLAIMS), read_frozen(ROOT / "evidence"), KEPT["settings"])
    now = json.loads(json.dumps(verdicts(CLAIMS, run.studies, run.level, folders, plan)))
    kept = {claim["key"]: claim for claim in KEPT["claims"]}
    assert kept.keys() == {claim["key"] for claim in now["claims"]}
    partial = {claim["document"] for claim in now["claims"] if claim["key"] in lacking}
    for claim in now["claims"]:
        before = kept[claim["key"]]
        if claim["key"] in lacking:
            continue
        for name, reading in claim["readings"].items():
            assert reading["cases"] == before["readings"][name]["cases"], (claim["key"], name)
        if claim["document"] not in partial:  # the others lack tests of their family
            assert claim == before, "words changed: python scripts/evidence.py --judge"
