"""The evidence: the ledger of a run with more seeds, which the project keeps.

A run decides as many statements as its seeds allow. The paper shows the verdicts of both ledgers,
and says where they used different tests.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from normscope.formats import INTEGER
from normscope.pages.statements import (
    COUNTED,
    DECIDED,
    assertions,
    counts,
    is_post_hoc,
    shown_verdict,
)
from normscope.pages.table import Column, PageTable, Row


class Evidence(NamedTuple):
    """The results of the evidence run.

    Args:
        configuration: the file that configured it.
        is_same: whether the current run has the same configuration.
        ledger: its claims.json.
    """

    configuration: str
    is_same: bool
    ledger: Mapping[str, Any]

    def of(self, claim: Row) -> Row | None:
        """The same statement in the evidence, if it has it."""
        same = (c for c in self.ledger["claims"] if c["key"] == claim["key"])
        return next(same, None)


def read_evidence(folder: Path, config: Mapping[str, Any]) -> Evidence:
    """The evidence in a folder, compared with the configuration of the current run."""
    ledger, manifest, run = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("claims", "manifest", "run")
    )
    # the evidence may record more parts, such as the style of figures: these decide no verdict
    is_same = all(manifest["config"].get(key) == value for key, value in config.items())
    return Evidence(run["configuration"], is_same, ledger)


def verdict_table(ledger: Mapping[str, Any], evidence: Evidence | None) -> PageTable:
    """What became of the assertions in this run and in the evidence."""
    runs = {"this run": ledger} | ({} if evidence is None else {"the evidence": evidence.ledger})
    rows = tuple(
        (
            name,
            *counts(assertions(run)).values(),
            sum(map(is_post_hoc, assertions(run))),
        )
        for name, run in runs.items()
    )
    titles = (*COUNTED, "post hoc")
    columns = (Column("verdicts of"), *(Column(title, INTEGER) for title in titles))
    return PageTable("This run and the evidence", columns, rows)


def kept_verdict(claim: Row, evidence: Evidence) -> str:
    """The verdict of a statement in the evidence."""
    other = evidence.of(claim)
    if other is None:
        return "not in the evidence"
    return shown_verdict(other) + ", by another test" * (not _same_test(claim, other))


def evidence_words(ledger: Mapping[str, Any], evidence: Evidence) -> dict[str, Any]:
    """Words about the evidence, which compare statements that both runs tested in the same way.

    ``differing`` are those that the runs decide differently, ``alone`` is the number of those
    that only one run decides.
    """
    unlike = [
        (c, other)
        for c in ledger["claims"]
        if (other := evidence.of(c)) is not None
        and _same_test(c, other)
        and c["verdict"] != other["verdict"]
    ]
    differing = [
        {
            "statement": c["statement"].rstrip("."),
            "here": shown_verdict(c),
            "there": shown_verdict(other),
        }
        for c, other in unlike
        if {c["verdict"], other["verdict"]} <= set(DECIDED)
    ]
    return {
        "configuration": evidence.configuration,
        "is_same": evidence.is_same,
        "differing": differing,
        "alone": len(unlike) - len(differing),
    }


def _same_test(claim: Row, other: Row) -> bool:
    return claim["digest"] == other["digest"]
