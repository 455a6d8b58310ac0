"""The first thing that is said: what was found, what is open and why, and how sure that is.

All of it comes from claims.json, whatever its verdicts are and however many statements it has.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from normscope.paper.evidence import DECIDED
from normscope.paper.statements import (
    VERDICTS,
    counts,
    effect,
    is_exploratory,
    shown_verdict,
)
from normscope.paper.table import Column, PageTable, Row, tabulate
from normscope.words import significant_or_tiny

SURE = 0.001  # a corrected p below it is told apart from one that is just below the level
SHOWN = 6  # reasons of open statements that are told


def tally_table(ledger: Mapping[str, Any]) -> PageTable:
    """A row a document: how many of its statements have each verdict, and how many as published."""
    stated: dict[str, list[Row]] = {}
    for claim in ledger["claims"]:
        stated.setdefault(_document(ledger, claim), []).append(claim)
    rows = [{"name": name, "claims": claims} for name, claims in stated.items()]

    def count(verdict: str) -> Column:
        return Column(verdict, lambda row: str(counts(row["claims"])[verdict]))

    def agrees(title: str, agreement: bool) -> Column:
        return Column(title, lambda row: str([*map(as_published, row["claims"])].count(agreement)))

    columns = [
        Column("document", lambda row: row["name"]),
        Column("statements", lambda row: str(len(row["claims"]))),
        *map(count, VERDICTS),
        agrees("as published", True),
        agrees("not as published", False),
    ]
    return tabulate("Verdicts by document", rows, columns)


def as_published(claim: Row) -> bool | None:
    """Whether a decided statement is as its document says; None where it says nothing."""
    if claim["published_verdict"] not in DECIDED or claim["verdict"] not in DECIDED:
        return None
    return claim["verdict"] == claim["published_verdict"]


def is_sure(claim: Row) -> bool:
    """Whether a statement is decided far below the level, or chance has no part in it."""
    return claim["verdict"] in DECIDED and (claim["p_holm"] is None or claim["p_holm"] < SURE)


def tiles(ledger: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every statement as a tile of the picture, in the ledger's order.

    Keys: document and its link, verdict; sign (``=`` as published, ``≠`` not, ``·`` nothing was
    published, ``?`` undecided; ``*`` follows where it is exploratory); is_sure; p (after Holm, 0
    without chance); words, what it stands for.
    """
    return [_tile(claim, ledger) for claim in ledger["claims"]]


def _tile(claim: Row, ledger: Mapping[str, Any]) -> dict[str, Any]:
    is_open = claim["verdict"] not in DECIDED
    sign = "?" if is_open else {True: "=", False: "≠", None: "·"}[as_published(claim)]
    p = claim["p_holm"]
    words = [f"{claim['statement']} {shown_verdict(claim)}"]
    if is_open and claim["reason"]:
        words[0] += f": {claim['reason']}"
    if claim["published_verdict"] == "none":
        words.append("nothing was published")
    else:
        words.append(f"published: {claim['published_verdict']}")
    if p is not None:
        words.append(f"p {significant_or_tiny(p)}")
    return {
        "document": _document(ledger, claim),
        "link": ledger["documents"][claim["document"]]["link"],
        "verdict": claim["verdict"],
        "sign": sign + "*" * is_exploratory(claim),
        "is_sure": is_sure(claim),
        "p": p or 0.0,
        "words": "; ".join(words),
    }


def _document(ledger: Mapping[str, Any], claim: Row) -> str:
    """What a statement's document is called."""
    document = ledger["documents"][claim["document"]]
    return document["author"] or document["title"]


def documents(ledger: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The documents whose statements are tested: what the page calls them, title and link."""
    stated = dict.fromkeys(claim["document"] for claim in ledger["claims"])
    return [
        {"name": given["author"] or given["title"], "title": given["title"], "link": given["link"]}
        for given in (ledger["documents"][key] for key in stated)
    ]


def totals(ledger: Mapping[str, Any], kept: Mapping[str, Row]) -> dict[str, Any]:
    """Words for the first lines.

    Args:
        ledger: what claims.json holds.
        kept: statements of another run by their keys, whose verdicts stand beside those that are
            open here.
    """
    claims = ledger["claims"]
    agreed = Counter(map(as_published, claims))
    decided = [claim for claim in claims if claim["verdict"] in DECIDED]
    tested = [claim for claim in decided if claim["p_holm"] is not None]
    reasons = _reasons([claim for claim in claims if claim["verdict"] not in DECIDED], kept)
    largest = max((claim["p_holm"] for claim in tested), default=None)
    return counts(claims) | {
        "count": len(claims),
        "documents": len({claim["document"] for claim in claims}),
        "against": _against(ledger),
        "published": agreed[True] + agreed[False],
        "stand": agreed[True],
        "tested": len(tested),
        "sure": sum(map(is_sure, tested)),
        "largest_p": None if largest is None else significant_or_tiny(largest),
        "facts": len(decided) - len(tested),
        "below": f"{SURE:g}",
        "exploratory": sum(map(is_exploratory, claims)),
        "reasons": reasons[:SHOWN],
        "more": sum(reason["count"] for reason in reasons[SHOWN:]),
    }


def _against(ledger: Mapping[str, Any]) -> list[dict[str, str]]:
    """Statements that are decided otherwise than published, the surest of each document."""
    against = [claim for claim in ledger["claims"] if as_published(claim) is False]
    surest: dict[str, Row] = {}
    for claim in sorted(against, key=lambda claim: claim["p_holm"] or 0.0):
        surest.setdefault(claim["document"], claim)
    return [
        {
            "statement": claim["statement"].rstrip("."),
            "document": _document(ledger, claim),
            "verdict": shown_verdict(claim),
            "effect": "" if claim["effect"] is None else effect(claim),
        }
        for claim in surest.values()
    ]


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
            "kept": shown_verdict(kept[group[0]["key"]])
            if len(group) == 1 and kept.get(group[0]["key"], {}).get("verdict") in DECIDED
            else "",
        }
        for why, group in sorted(by_reason.items(), key=lambda item: -len(item[1]))
    ]


def trace_table(
    ledger: Mapping[str, Any],
    traces: Mapping[str, Mapping[str, Any]],
    configuration: str | None = None,
) -> PageTable:
    """A row a statement: where it is shown and tested, what measures it, and what runs it again.

    Args:
        ledger: what claims.json holds.
        traces: of every statement, by its key: ``test``, ``tables`` and ``code``.
        configuration: the file that the run was made with, where that is known.
    """
    options = [] if configuration is None else ["--configfile", configuration]

    def command(claim: Row) -> str:
        tables = [name.split(".") for name in traces[claim["key"]]["tables"]]
        files = [f"results/{study}/tables/{name}.csv" for study, name in tables]
        return " ".join(["snakemake", "--cores", "4", *files, *options])

    columns = [
        Column("statement", lambda claim: claim["statement"]),
        Column("key", lambda claim: claim["key"]),
        Column("figure", lambda claim: claim["figure"]),
        Column("numbers", lambda claim: claim["study"]),
        Column("test", lambda claim: traces[claim["key"]]["test"]),
        Column("code that measures it", lambda claim: ", ".join(traces[claim["key"]]["code"])),
        Column("command", command),
    ]
    return tabulate("Where each statement comes from", ledger["claims"], columns)
