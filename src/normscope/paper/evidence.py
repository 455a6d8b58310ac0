"""The evidence: the ledger of a run with more seeds, which the project keeps.

A run decides as many statements as its seeds allow. The paper shows the verdicts of both ledgers,
and says where they used different tests.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from normscope.formats import INTEGER
from normscope.paper.section import Named
from normscope.paper.statements import DECIDED, VERDICTS, counts, shown_verdict
from normscope.paper.table import Column, Field, PageTable, Row, derived

# what decides a verdict, without words; a contrast that was changed later has ``changed_after``
TEST = "test direction bound margin scale holds_in unit changed_after".split()


class Evidence(NamedTuple):
    """The results of the evidence run.

    Args:
        configuration: the file that configured it.
        is_same: whether the current run has the same configuration.
        claims: its statements by key, as in claims.json.
    """

    configuration: str
    is_same: bool
    claims: Mapping[str, Row]


def read_evidence(folder: Path, config: Mapping[str, Any]) -> Evidence:
    """The evidence in a folder, compared with the configuration of the current run."""
    ledger, manifest, run = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("claims", "manifest", "run")
    )
    # the evidence may record more parts, such as the style of figures: these decide no verdict
    is_same = all(manifest["config"].get(key) == value for key, value in config.items())
    claims = {claim["key"]: claim for claim in ledger["claims"]}
    return Evidence(run["configuration"], is_same, claims)


def verdict_table(ledger: Mapping[str, Any], evidence: Evidence | None) -> PageTable:
    """Counts of verdicts in this run and in the evidence."""
    counted = {"this run": counts(ledger["claims"])}
    if evidence is not None:
        counted["the evidence"] = counts(evidence.claims.values())
    rows = tuple(
        (run, sum(count[verdict] for verdict in DECIDED), *count.values())
        for run, count in counted.items()
    )
    titles = ("decided", *VERDICTS)
    columns = (Column("verdicts of"), *(Column(title, INTEGER) for title in titles))
    return PageTable("Verdicts", columns, rows)


def evidence_columns(evidence: Evidence) -> list[Field]:
    """Columns of the ledger: a statement's verdict in the evidence, and which runs decided it."""

    def verdict(claim: Row) -> str | None:
        other = evidence.claims.get(claim["key"])
        return None if other is None else shown_verdict(other)

    def decided_in(claim: Row) -> str:
        other = evidence.claims.get(claim["key"])
        deciding = [
            run
            for run, one in {"this run": claim, "the evidence": other}.items()
            if one is not None and one["verdict"] in DECIDED
        ]
        where = "both" if len(deciding) > 1 else "".join(deciding) or "neither"
        is_other = other is not None and not _same_test(claim, other)
        return f"{where}; the evidence has another test" if is_other else where

    return [derived("evidence", verdict), derived("decided in", decided_in)]


def evidence_words(ledger: Mapping[str, Any], evidence: Evidence) -> dict[str, Any]:
    """Words about the evidence, which compare statements that both runs tested in the same way.

    ``differing`` are those that the runs decide differently, ``alone`` is the number of those
    that only one run decides.
    """
    unlike = [
        {"statement": c["statement"].rstrip("."), "here": c["verdict"], "there": other["verdict"]}
        for c in ledger["claims"]
        if (other := evidence.claims.get(c["key"])) is not None
        and _same_test(c, other)
        and c["verdict"] != other["verdict"]
    ]
    differing = [pair for pair in unlike if {pair["here"], pair["there"]} <= set(DECIDED)]
    return {
        "configuration": evidence.configuration,
        "is_same": evidence.is_same,
        "differing": differing,
        "alone": len(unlike) - len(differing),
    }


def evidence_numbers(evidence: Evidence) -> Iterator[Named]:
    """Counts of verdicts in the evidence."""
    for verdict, count in counts(evidence.claims.values()).items():
        yield Named(("evidence claims", verdict), count)


def _same_test(claim: Row, other: Row) -> bool:
    return all(claim.get(key) == other.get(key) for key in TEST)
