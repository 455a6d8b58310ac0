"""Single readings of statements, and statements with all of them, tested on planted tables."""

from collections.abc import Mapping

import pandas as pd
from statements import CLAIMS, evidence

from normscope.ledger.claim import Claim, Finding
from normscope.ledger.entry import Claims
from normscope.ledger.judgement import find_all, judge


def finding(key: str, reading: str, tables: Mapping[str, pd.DataFrame]) -> Finding:
    """What the test of one reading of a statement finds in tables, by ``study.table``."""
    return statement(key, tables, reading).findings[reading]


def statement(key: str, tables: Mapping[str, pd.DataFrame], *readings: str) -> Claim:
    """A statement with some of its readings, or with all of them, and what their tests find."""
    ((document, entry),) = [(d, e) for d, k, e in CLAIMS if k == key]
    chosen = {name: entry.readings[name] for name in readings or entry.readings}
    alone = {key: entry.model_copy(update={"readings": chosen})}
    whole = CLAIMS.documents[document].model_copy(update={"claims": alone})
    (claim,) = find_all(Claims({document: whole}), evidence(tables))
    return claim


def verdict(claim: Claim) -> str:
    """Its verdict, if it were the only statement of its document."""
    return judge([claim], 0.05)[0].verdict
