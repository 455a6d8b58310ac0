"""Statements of data/claims/, judged by tables that a test plants."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
from normscope.verdicts.case import Case
from normscope.verdicts.claim import TESTS, Claim, Evidence, Finding
from normscope.verdicts.contrast import find
from normscope.verdicts.entry import Claims, Entry
from normscope.verdicts.entry import load as load_claims
from normscope.verdicts.judgement import Judgement, judge
from processes import ROOT

from normscope.config import Config, load
from normscope.pilot import read_project
from normscope.studies.statements import import_tests

CONFIG: Config = load(read_project(ROOT, ROOT / "config/paper.yaml"))
FILES = sorted((ROOT / "data/claims").glob("*.yaml"))
CLAIMS: Claims = load_claims(FILES)
SELECTION = "undecided: runs diverged, and the others are a selection"
UNCLEAR = "undecided: p is above 0.05"
FEW = "undecided: 5 seeds, 6 needed"
RELATED = ("contradicts", "refines")  # keys with the names of other statements
import_tests(CONFIG.studies)


def evidence(tables: Mapping[str, pd.DataFrame], **changes: Any) -> Evidence:
    """Tables by ``study.table``, under the configuration of the evidence."""
    by_study: dict[str, dict[str, pd.DataFrame]] = {}
    for name, table in tables.items():
        study, _, of_study = name.partition(".")
        by_study.setdefault(study, {})[of_study] = table
    values: dict[str, Any] = {"tables": by_study, "studies": CONFIG.studies, "level": 0.95}
    return Evidence(**values | changes)


def flat(entry: Entry) -> dict[str, Any]:
    """A statement with one reading, the first that has a contrast, whose keys the entry gives."""
    whole = entry.model_dump(exclude_unset=True, exclude={"readings", "published", *RELATED})
    reading = next((r for r in entry.readings.values() if r.contrast), entry.first)
    return {**whole, **reading.model_dump(exclude_unset=True), "readings": {"stated": {}}}


class Found(NamedTuple):
    """What the test of one reading found, and its statement with this reading alone."""

    finding: Finding
    claim: Claim

    @property
    def cases(self) -> Mapping[str, Case]:
        return self.finding.cases

    @property
    def verdict(self) -> str:
        return self.finding.answer


def claim_on(
    key: str, tables: Mapping[str, pd.DataFrame] | Evidence, reading: str = "", **changes: Any
) -> Found:
    """What the function or contrast of a statement's reading finds.

    Args:
        key: of the statement.
        tables: by ``study.table``.
        reading: its name; the first by default.
        changes: to the reading.
    """
    planted = tables if isinstance(tables, Evidence) else evidence(tables)
    ((document, entry),) = [(d, e) for d, k, e in CLAIMS if k == key]
    name = reading or next(iter(entry.readings))
    asked = entry.readings[name].model_copy(update=changes)
    finding = TESTS.get(key, find)(asked, planted)
    alone = entry.model_copy(update={"readings": {name: asked}})
    return Found(finding, Claim(document, key, alone, {name: finding}))


def verdict(
    key: str, tables: Mapping[str, pd.DataFrame] | Evidence, reading: str = "", **changes: Any
) -> str:
    return claim_on(key, tables, reading, **changes).verdict


def judged(found: Found, tests: int = 1) -> Judgement:
    """The statement's line in a ledger of so many tests, the others with a p of 1."""
    claim = found.claim
    open_ = Case(effect=0.0, n=20, p_holds=0.5, p_fails=0.5, smallest=2.0**-20)
    unknown = {name: Finding({"": open_}) for name in claim.findings}
    others = [Claim(claim.document, f"other_{i}", claim.entry, unknown) for i in range(tests - 1)]
    return judge([claim, *others], 0.05)[0]
