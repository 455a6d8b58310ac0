"""The kept verdicts follow from the kept tables, the present tests and what was registered."""

from processes import ROOT
from statements import CLAIMS, CONFIG

from normscope.studies.verdicts import verdicts
from normscope.verdicts.frozen import Plan, digests, read_frozen
from normscope.verdicts.verdict import Verdicts, read


def test_the_kept_verdicts_follow_from_the_kept_tables():
    kept = read(ROOT / "evidence/claims.json")
    folders = {name: ROOT / "evidence" / name for name in CONFIG.studies}
    plan = Plan(digests(CLAIMS), read_frozen(ROOT / "evidence"), kept.settings)
    now = verdicts(CLAIMS, CONFIG.studies, CONFIG.level, folders, plan)
    again = Verdicts.model_validate_json(now.model_dump_json())
    assert again == kept, "run: python scripts/evidence.py --judge"
