"""The ledger that follows from the tables of all studies, in a run or in the evidence."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from normscope.io.tables import Tables
from normscope.statistics.levels import ALPHA
from normscope.studies.sources import sources
from normscope.studies.statements import import_tests
from normscope.studies.study import Study
from normscope.verdicts.case import Case
from normscope.verdicts.claim import Claim, Evidence, Finding
from normscope.verdicts.entry import Claims
from normscope.verdicts.frozen import Plan
from normscope.verdicts.judgement import find_all, judge
from normscope.verdicts.record import ledger

UNKEPT = Case.unknown("undecided: a table that it reads is not kept")


def unkept(claims: Claims, studies: Mapping[str, Study], folders: Mapping[str, Path]) -> set[str]:
    """The statements that read a table which no folder has."""
    return {
        key
        for key, place in sources(claims, studies).items()
        for study, _, table in (name.partition(".") for name in place["tables"])
        if not (folders[study] / f"{table}.csv").is_file()
    }


def verdicts(
    claims: Claims,
    studies: Mapping[str, Study],
    level: float,
    folders: Mapping[str, Path],
    plan: Plan,
) -> dict[str, Any]:
    """The content of claims.json.

    Args:
        claims: The statements.
        studies: The configuration of every study, by name.
        level: The confidence level of intervals.
        folders: The folder with the tables of every study, by name. A statement that reads a table
            which is missing is undecided, and counts among the tests of its document.
        plan: What was registered before the data existed.
    """
    import_tests(studies)
    tables = {name: Tables(folders[name], study.TABLES) for name, study in studies.items()}
    lacking = unkept(claims, studies, folders)
    documents = {
        name: document.model_copy(
            update={"statements": {k: e for k, e in document.claims.items() if k not in lacking}}
        )
        for name, document in claims.documents.items()
    }
    tested = find_all(Claims(documents), Evidence(tables, studies, level))
    by_key = {claim.key: claim for claim in tested}
    statements = [
        by_key.get(key)
        or Claim(document, key, entry, dict.fromkeys(entry.readings, Finding({"": UNKEPT})))
        for document, key, entry in claims
    ]
    return ledger(claims, judge(statements, ALPHA), level, plan)
