"""Statements of data/claims/, judged by tables that a test plants."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import yaml
from processes import ROOT

from normscope.config import Config, load
from normscope.ledger.case import Case
from normscope.ledger.claim import Claim, Evidence, Finding
from normscope.ledger.entry import Claims
from normscope.ledger.entry import load as load_claims
from normscope.ledger.judgement import Judgement, find_all, judge
from normscope.studies.statements import import_tests

CONFIG: Config = load(yaml.safe_load((ROOT / "config.yaml").read_text()))
FILES = sorted((ROOT / "data/claims").glob("*.yaml"))
CLAIMS: Claims = load_claims(FILES)
SELECTION = "undecided: runs diverged, and the others are a selection"
UNCLEAR = "undecided: p is above 0.05"
FEW = "undecided: 5 seeds, 6 needed"
import_tests(CONFIG.studies)


def evidence(tables: Mapping[str, pd.DataFrame], **changes: Any) -> Evidence:
    """Tables by ``study.table``, under the default configuration."""
    by_study: dict[str, dict[str, pd.DataFrame]] = {}
    for name, table in tables.items():
        study, _, of_study = name.partition(".")
        by_study.setdefault(study, {})[of_study] = table
    values: dict[str, Any] = {"tables": by_study, "studies": CONFIG.studies, "level": 0.95}
    return Evidence(**values | changes)


def finding(key: str, reading: str, tables: Mapping[str, pd.DataFrame] | Evidence) -> Finding:
    """What the test of one reading of a statement finds in tables, by ``study.table``."""
    return claim_on(key, tables, reading).findings[reading]


def claim_on(key: str, tables: Mapping[str, pd.DataFrame] | Evidence, *readings: str) -> Claim:
    """A statement with some of its readings, or with all of them, and what their tests find."""
    planted = tables if isinstance(tables, Evidence) else evidence(tables)
    ((document, entry),) = [(d, e) for d, k, e in CLAIMS if k == key]
    chosen = {name: entry.readings[name] for name in readings or entry.readings}
    alone = {key: entry.model_copy(update={"readings": chosen})}
    whole = CLAIMS.documents[document].model_copy(update={"claims": alone})
    (claim,) = find_all(Claims({document: whole}), planted)
    return claim


def judged(claim: Claim, tests: int = 1) -> Judgement:
    """The statement's line in a ledger of so many tests, the others with a p of 1."""
    open_ = Case(effect=0.0, n=20, p_holds=0.5, p_fails=0.5, smallest=2.0**-20)
    unknown = {name: Finding({"": open_}) for name in claim.findings}
    others = [Claim(claim.document, f"other_{i}", claim.entry, unknown) for i in range(tests - 1)]
    return judge([claim, *others], 0.05)[0]
