"""Single readings of statements, and statements with all of them, tested on planted tables."""

from collections.abc import Mapping

import pandas as pd
from normscope.verdicts.claim import Claim, Evidence, Finding
from normscope.verdicts.entry import Claims
from normscope.verdicts.judgement import Judgement, find_all, judge
from statements import CLAIMS, evidence

Tables = Mapping[str, pd.DataFrame] | Evidence  # by study.table


def finding(key: str, reading: str, tables: Tables) -> Finding:
    """What the test of one reading of a statement finds."""
    return statement(key, tables, reading).findings[reading]


def statement(key: str, tables: Tables, *readings: str) -> Claim:
    """A statement with some of its readings, or with all of them, and what their tests find."""
    ((document, entry),) = [(d, e) for d, k, e in CLAIMS if k == key]
    chosen = {name: entry.readings[name] for name in readings or entry.readings}
    alone = {key: entry.model_copy(update={"readings": chosen})}
    whole = CLAIMS.documents[document].model_copy(update={"statements": alone})
    planted = tables if isinstance(tables, Evidence) else evidence(tables)
    (claim,) = find_all(Claims({document: whole}), planted)
    return claim


def verdict(claim: Claim) -> str:
    """Its verdict, if it were the only statement of its document."""
    return judge([claim], 0.05)[0].verdict


def judgement_on(key: str, tables: Tables, *readings: str) -> Judgement:
    """The line of a statement, with some of its readings or all of them, in its own ledger."""
    return judge([statement(key, tables, *readings)], 0.05)[0]
