"""The ledger, claims.json, as tables and numbers of the paper."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from normscope.formats import SCIENTIFIC
from normscope.paper.section import Named
from normscope.paper.table import (
    Column,
    Field,
    PageTable,
    Quantity,
    Row,
    derived,
    number,
    tabulate,
    text,
)

VERDICTS = ("holds", "fails", "undecided")
DECIDED = VERDICTS[:2]
NUMBERS = ("effect", "low", "high", "hedges_g", "p", "p_flips", "p_holm")
ONE_BY_ONE = {  # keys of claims.json with the titles of their columns
    "statement": "claim",
    "alone": "verdict",
    "corrected": "corrected",
    "restated": "in plain words",
    "criterion": "test",
    "reasons": "its numbers",
    "as_published": "as published",
    "its_verdict": "its verdict",
}


def is_exploratory(claim: Row) -> bool:
    """Whether the test of a statement was changed after its data were seen."""
    return claim.get("changed_after") is not None  # evidence of older versions lacks the key


def shown_verdict(claim: Row) -> str:
    """The verdict as pages show it: marked if it is exploratory."""
    return f"{claim['verdict']} (exploratory)" if is_exploratory(claim) else claim["verdict"]


def change_in_words(changed: Mapping[str, Any] | None) -> str:
    """Why a verdict is exploratory; empty if it is not.

    Args:
        changed: the fields of an entry's ``changed_after``.
    """
    if changed is None:
        return ""
    return (
        f"exploratory: its test was changed after its data were seen (commit {changed['commit']};"
        f" previous verdict: {changed['was']}): {changed['why']}"
    )


def document_name(ledger: Mapping[str, Any], claim: Row) -> str:
    """The author of a statement's document, or its title."""
    document = ledger["documents"][claim["document"]]
    return document["author"] or document["title"]


def ledger_table(ledger: Mapping[str, Any], more: Sequence[Field] = ()) -> PageTable:
    """One row per statement: published verdict, corrected verdict, and what it rests on.

    Args:
        ledger: the contents of claims.json.
        more: columns to insert after the corrected verdict.
    """

    def source(claim: Row) -> str:
        return f"{document_name(ledger, claim)}, {claim['where']}"

    def published(claim: Row) -> str | None:
        return None if claim["published_verdict"] == "none" else claim["published_verdict"]

    def units(claim: Row) -> str | None:
        is_tested = claim["n"] and claim["p"] is not None
        return f"{claim['n']} {claim['n_unit']}" if is_tested else None

    fields = [
        text("statement"),
        derived("source", source),
        derived("published number", lambda claim: claim["published_number"] or None),
        derived("published", published),
        derived("corrected", shown_verdict),
        *more,
        derived("effect", effect),
        derived("n", units),
        number("Hedges g", "hedges_g", SCIENTIFIC),
        number("p", "p", SCIENTIFIC),
        number("p (flips)", "p_flips", SCIENTIFIC),
        number("p (Holm)", "p_holm", SCIENTIFIC),
        text("figure"),
        derived("why", lambda claim: _joined(_change(claim), claim["reason"]) or None),
    ]
    return tabulate("The ledger of claims", ledger["claims"], fields)


def claims_table(title: str, claims: Sequence[Row]) -> PageTable:
    """One row per statement: what each protocol shows, in words. Empty columns are left out."""
    rows = [{**c, "alone": _joined(c["alone"], _change(c)), "reasons": _reasons(c)} for c in claims]
    fields = [text(head, key) for key, head in ONE_BY_ONE.items() if any(r[key] for r in rows)]
    return tabulate(title, rows, fields)


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _change(claim: Row) -> str:
    return change_in_words(claim.get("changed_after"))


def _reasons(claim: Row) -> str:
    """Why bound and margin are what they are."""
    return _joined(
        *(
            f"{name} {claim[name]:.6g}: {claim[f'{name}_because']}"
            for name in ("bound", "margin")
            if claim[f"{name}_because"]
        )
    )


def ledger_numbers(ledger: Mapping[str, Any]) -> Iterator[Named]:
    """Effect, interval, n and p of every statement, and counts of verdicts."""
    claims = ledger["claims"]
    for claim in claims:
        for word in NUMBERS:
            if claim[word] is not None:
                yield Named(("claim", claim["key"], word), claim[word], SCIENTIFIC)
        if claim["n"]:
            yield Named(("claim", claim["key"], "n"), claim["n"])
    for verdict, count in counts(claims).items():
        yield Named(("claims", verdict), count)
    yield Named(("claims",), len(claims))
    yield Named(("claims exploratory",), sum(map(is_exploratory, claims)))
    yield Named(("claims tests",), ledger["tests"])


def verdicts(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of verdicts, and the verdict of every statement."""
    each = {claim["key"]: claim["verdict"] for claim in ledger["claims"]}
    return {"count": counts(ledger["claims"]), "statement": each}


def counts(claims: Iterable[Row]) -> dict[str, int]:
    """Counts of verdicts, in the order of ``VERDICTS``."""
    given = [claim["verdict"] for claim in claims]
    return {verdict: given.count(verdict) for verdict in VERDICTS}


def effect(claim: Row) -> str | None:
    """The quantity with its interval, and the case that decided, if there are several."""
    if claim["effect"] is None:
        return None
    quantity = Quantity(claim["effect"], claim["low"], claim["high"])
    where = f" ({claim['case']})" if claim["case"] else ""
    return f"{claim['quantity']}: {Column('effect', SCIENTIFIC).text(quantity)}{where}"
