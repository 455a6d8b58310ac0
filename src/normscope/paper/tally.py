"""The first thing that is said: what was found, what is open and why, and how sure that is.

All of it comes from claims.json, whatever its verdicts are and however many statements it has.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from normscope.paper.evidence import DECIDED
from normscope.paper.statements import VERDICTS
from normscope.paper.table import Column, PageTable, Row, tabulate
from normscope.words import significant_or_tiny

OPEN = VERDICTS[2]
SURE = 0.001  # a corrected p below it is told apart from one that is just below the level
SHOWN = 6  # reasons of open statements that are told


def tally_table(ledger: Mapping[str, Any]) -> PageTable:
    """A row a document: how many of its statements have each verdict, and how many as published."""
    documents = {key: d["author"] or d["title"] for key, d in ledger["documents"].items()}
    stated: dict[str, list[Row]] = {}
    for claim in ledger["claims"]:
        stated.setdefault(claim["document"], []).append(claim)
    rows = [{"name": documents[key], "claims": claims} for key, claims in stated.items()]
    verdicts = Counter(kind_of(claim) for claim in ledger["claims"])

    def count(verdict: str) -> Column:
        def cell(row: Row) -> str:
            return str(sum(kind_of(claim) == verdict for claim in row["claims"]))

        return Column(verdict, cell)

    def agrees(title: str, agreement: bool) -> Column:
        return Column(title, lambda row: str([*map(as_published, row["claims"])].count(agreement)))

    kinds = [*VERDICTS, *sorted(set(verdicts) - set(VERDICTS))]
    columns = [
        Column("document", lambda row: row["name"]),
        Column("statements", lambda row: str(len(row["claims"]))),
        *map(count, kinds),
        agrees("as published", True),
        agrees("not as published", False),
    ]
    return tabulate("Verdicts by document", rows, columns)


def kind_of(claim: Row) -> str:
    """The verdict without its reasons."""
    verdict = claim["verdict"]
    return OPEN if verdict.startswith(OPEN) else verdict


def as_published(claim: Row) -> bool | None:
    """Whether a decided statement is as its document says; None where it says nothing."""
    if claim["published_verdict"] not in DECIDED or claim["verdict"] not in DECIDED:
        return None
    return claim["verdict"] == claim["published_verdict"]


def totals(ledger: Mapping[str, Any], kept: Mapping[str, Row]) -> dict[str, Any]:
    """Words for the first lines.

    Args:
        ledger: what claims.json holds.
        kept: statements of another run by their keys, whose verdicts stand beside those that are
            open here.
    """
    claims = ledger["claims"]
    verdicts = Counter(kind_of(claim) for claim in claims)
    agreed = Counter(map(as_published, claims))
    decided = [claim for claim in claims if claim["verdict"] in DECIDED]
    tested = [claim["p_holm"] for claim in decided if claim["p_holm"] is not None]
    reasons = _reasons([claim for claim in claims if claim["verdict"] not in DECIDED], kept)
    return {
        "count": len(claims),
        "holds": verdicts["holds"],
        "fails": verdicts["fails"],
        "open": len(claims) - len(decided),
        "published": agreed[True] + agreed[False],
        "stand": agreed[True],
        "tested": len(tested),
        "sure": sum(p < SURE for p in tested),
        "largest_p": significant_or_tiny(max(tested)) if tested else None,
        "facts": len(decided) - len(tested),
        "below": f"{SURE:g}",
        "reasons": reasons[:SHOWN],
        "more": sum(reason["count"] for reason in reasons[SHOWN:]),
    }


def _reasons(claims: Sequence[Row], kept: Mapping[str, Row]) -> list[dict[str, Any]]:
    """Why statements are open, each reason once: the statement, or how many they are."""
    by_reason: dict[str, list[Row]] = {}
    for claim in claims:
        by_reason.setdefault(claim["reason"] or claim["verdict"], []).append(claim)
    return [
        {
            "why": why,
            "count": len(group),
            "statement": group[0]["statement"].rstrip(".") if len(group) == 1 else "",
            "kept": kept[group[0]["key"]]["verdict"]
            if len(group) == 1 and kept.get(group[0]["key"], {}).get("verdict") in DECIDED
            else "",
        }
        for why, group in sorted(by_reason.items(), key=lambda item: -len(item[1]))
    ]


def trace_table(ledger: Mapping[str, Any], traces: Mapping[str, Mapping[str, Any]]) -> PageTable:
    """A row a statement: where it is shown and tested, what measures it, and what runs it again.

    Args:
        ledger: what claims.json holds.
        traces: of every statement, by its key: ``test``, ``tables`` and ``code``.
    """

    def files(claim: Row) -> str:
        tables = [name.split(".") for name in traces[claim["key"]]["tables"]]
        return " ".join(f"results/{study}/tables/{name}.csv" for study, name in tables)

    columns = [
        Column("statement", lambda claim: claim["statement"]),
        Column("key", lambda claim: claim["key"]),
        Column("figure", lambda claim: claim["figure"]),
        Column("numbers", lambda claim: claim["study"]),
        Column("test", lambda claim: traces[claim["key"]]["test"]),
        Column("code that measures it", lambda claim: ", ".join(traces[claim["key"]]["code"])),
        Column("command", lambda claim: f"snakemake --cores 4 {files(claim)}".strip()),
    ]
    return tabulate("Where each statement comes from", ledger["claims"], columns)
