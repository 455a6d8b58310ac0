"""The ledger that a project keeps as its evidence, beside the one of a run.

A run decides as much as its seeds allow. A statement has a verdict in both; where the two put
another test to it, that is said.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from normscope.paper.section import Named
from normscope.paper.statements import VERDICTS, counts, shown_verdict
from normscope.paper.table import Column, PageTable, Row
from normscope.words import DASH

DECIDED = VERDICTS[:2]
ASKED = "quantity criterion direction bound margin holds_in test unit".split()  # of a statement


class Evidence(NamedTuple):
    """What a run found that the project keeps.

    Args:
        configuration: the file that it was made with.
        is_same: whether the run beside it has that configuration.
        claims: its statements, as claims.json has them, by their keys.
    """

    configuration: str
    is_same: bool
    claims: Mapping[str, Row]


def read_evidence(folder: Path, config: Mapping[str, Any]) -> Evidence:
    """The evidence in a folder, beside a run of this configuration."""
    ledger, manifest, run = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("claims", "manifest", "run")
    )
    theirs = {key: manifest["config"].get(key) for key in config}  # figures decide no verdict
    claims = {claim["key"]: claim for claim in ledger["claims"]}
    return Evidence(run["configuration"], theirs == config, claims)


def verdict_table(ledger: Mapping[str, Any], evidence: Evidence | None) -> PageTable:
    """How many statements are decided, and how: in this run, and in the evidence."""
    counted = {"this run": counts(ledger["claims"])}
    if evidence is not None:
        counted["the evidence"] = counts(evidence.claims.values())
    rows = tuple(
        (name, str(sum(given[word] for word in DECIDED)), *map(str, given.values()))
        for name, given in counted.items()
    )
    return PageTable("Verdicts", ("verdicts of", "decided", *VERDICTS), rows)


def evidence_columns(evidence: Evidence) -> list[Column]:
    """Of the ledger: a statement's verdict in the evidence, and where it was decided."""

    def verdict(claim: Row) -> str:
        other = evidence.claims.get(claim["key"])
        return DASH if other is None else shown_verdict(other)

    def decided_in(claim: Row) -> str:
        other = evidence.claims.get(claim["key"])
        here = claim["verdict"] in DECIDED
        there = other is not None and other["verdict"] in DECIDED
        where = {
            (True, True): "both",
            (True, False): "this run",
            (False, True): "the evidence",
            (False, False): "neither",
        }[here, there]
        is_other = other is not None and not _asks_the_same(claim, other)
        return f"{where}; the evidence has another test" if is_other else where

    return [Column("evidence", verdict), Column("decided in", decided_in)]


def evidence_words(ledger: Mapping[str, Any], evidence: Evidence) -> dict[str, Any]:
    """What the text says of both: whose the evidence is, and which verdicts differ.

    ``differing`` are statements that both decide, and not alike; of those that only one of them
    decides ``alone`` says how many.
    """
    pairs = [
        (claim, evidence.claims[claim["key"]])
        for claim in ledger["claims"]
        if claim["key"] in evidence.claims
    ]
    unlike = [
        {"statement": c["statement"].rstrip("."), "here": c["verdict"], "there": o["verdict"]}
        for c, o in pairs
        if _asks_the_same(c, o) and c["verdict"] != o["verdict"]
    ]
    differing = [pair for pair in unlike if {pair["here"], pair["there"]} <= set(DECIDED)]
    return {
        "configuration": evidence.configuration,
        "is_same": evidence.is_same,
        "differing": differing,
        "alone": len(unlike) - len(differing),
    }


def evidence_numbers(evidence: Evidence) -> Iterator[Named]:
    """How many statements have each verdict in the evidence."""
    for verdict, count in counts(evidence.claims.values()).items():
        yield ("evidence claims", verdict), str(count)


def _asks_the_same(claim: Row, other: Row) -> bool:
    return all(claim.get(key) == other.get(key) for key in ASKED)
