"""The opening of the page: findings, open questions with reasons, and the strength of the evidence.

All of it follows from claims.json, whatever its verdicts are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from normscope.formats import INTEGER, SCIENTIFIC
from normscope.paper.statements import (
    DECIDED,
    VERDICTS,
    counts,
    document_name,
    effect,
    is_exploratory,
    shown_verdict,
)
from normscope.paper.table import Column, Number, PageTable, Row, derived, tabulate, text

SURE = 0.001  # verdicts with a smaller corrected p-value are shown as certain
SHOWN = 6  # reasons for undecided statements that the opening lists


def tally_table(ledger: Mapping[str, Any]) -> PageTable:
    """One row per document: counts of verdicts, and how many agree with the published ones."""
    stated: dict[str, list[Row]] = {}
    for claim in ledger["claims"]:
        stated.setdefault(document_name(ledger, claim), []).append(claim)
    titles = ("statements", *VERDICTS, "as published", "not as published")
    columns = (Column("document"), *(Column(title, INTEGER) for title in titles))
    rows = []
    for name, group in stated.items():
        agreed = Counter(map(as_published, group))
        rows.append((name, len(group), *counts(group).values(), agreed[True], agreed[False]))
    return PageTable("Verdicts by document", columns, tuple(rows))


def as_published(claim: Row) -> bool | None:
    """Whether a verdict agrees with the published one; None if either is missing."""
    if claim["published_verdict"] not in DECIDED or claim["verdict"] not in DECIDED:
        return None
    return claim["verdict"] == claim["published_verdict"]


def is_sure(claim: Row) -> bool:
    """Whether a statement is decided with p < ``SURE``, or deterministically."""
    return claim["verdict"] in DECIDED and (claim["p_holm"] is None or claim["p_holm"] < SURE)


def tiles(ledger: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The statements as tiles of the picture, in the ledger's order.

    Keys: key and study of the statement; document and its link; verdict; sign (``=`` as published,
    ``≠`` not, ``·`` no published verdict, ``?`` undecided, followed by ``*`` if exploratory);
    is_sure; p (Holm-corrected, 0 if deterministic); words, the description of the tile.
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
        words.append(f"p {SCIENTIFIC.text(p)}")
    return {
        "key": claim["key"],
        "study": claim["study"],
        "document": document_name(ledger, claim),
        "link": ledger["documents"][claim["document"]]["link"],
        "verdict": claim["verdict"],
        "sign": sign + "*" * is_exploratory(claim),
        "is_sure": is_sure(claim),
        "p": p or 0.0,
        "words": "; ".join(words),
    }


def documents(ledger: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The documents whose statements are tested: name, title and link."""
    stated = {claim["document"]: claim for claim in ledger["claims"]}
    return [
        {"name": document_name(ledger, claim), **ledger["documents"][key]}
        for key, claim in stated.items()
    ]


def totals(ledger: Mapping[str, Any], kept: Mapping[str, Row]) -> dict[str, Any]:
    """Words for the opening.

    Args:
        ledger: the contents of claims.json.
        kept: statements of the evidence by key; their verdicts are shown with those that are
            undecided here.
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
        "largest_p": None if largest is None else Number(largest, SCIENTIFIC),
        "facts": len(decided) - len(tested),
        "below": SURE,
        "exploratory": sum(map(is_exploratory, claims)),
        "reasons": reasons[:SHOWN],
        "more": sum(reason["count"] for reason in reasons[SHOWN:]),
    }


def _against(ledger: Mapping[str, Any]) -> list[dict[str, str]]:
    """Statements that contradict the published verdict, the most certain one per document."""
    against = [claim for claim in ledger["claims"] if as_published(claim) is False]
    surest: dict[str, Row] = {}
    for claim in sorted(against, key=lambda claim: claim["p_holm"] or 0.0):
        surest.setdefault(claim["document"], claim)
    return [
        {
            "statement": claim["statement"].rstrip("."),
            "document": document_name(ledger, claim),
            "verdict": shown_verdict(claim),
            "effect": effect(claim) or "",
        }
        for claim in surest.values()
    ]


def _reasons(claims: Sequence[Row], kept: Mapping[str, Row]) -> list[dict[str, Any]]:
    """The reasons why statements are undecided, the most frequent first.

    A reason of one statement names it, with its verdict in the other run if that decides it.
    """
    by_reason: dict[str, list[Row]] = {}
    for claim in claims:
        by_reason.setdefault(claim["reason"] or claim["verdict"], []).append(claim)
    reasons = []
    for why, group in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        one = group[0] if len(group) == 1 else None
        other = kept.get(one["key"]) if one else None
        reasons.append(
            {
                "why": why,
                "count": len(group),
                "statement": one["statement"].rstrip(".") if one else "",
                "kept": shown_verdict(other) if other and other["verdict"] in DECIDED else "",
            }
        )
    return reasons


def trace_table(
    ledger: Mapping[str, Any],
    traces: Mapping[str, Mapping[str, Any]],
    configuration: str | None = None,
) -> PageTable:
    """One row per statement: where it is shown and tested, which code measures it, how to rerun it.

    Args:
        ledger: the contents of claims.json.
        traces: ``test``, ``tables`` and ``code`` of every statement, by key.
        configuration: the file that configured the run, if known.
    """
    options = [] if configuration is None else ["--configfile", configuration]

    def command(claim: Row) -> str:
        tables = [name.split(".") for name in traces[claim["key"]]["tables"]]
        files = [f"results/{study}/tables/{name}.csv" for study, name in tables]
        return " ".join(["snakemake", "--cores", "4", *files, *options])

    fields = [
        text("statement"),
        text("key"),
        text("figure"),
        text("numbers", "study"),
        derived("test", lambda claim: traces[claim["key"]]["test"]),
        derived("code that measures it", lambda claim: ", ".join(traces[claim["key"]]["code"])),
        derived("command", command),
    ]
    return tabulate("Where each statement comes from", ledger["claims"], fields)
