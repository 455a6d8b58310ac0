"""The ledger, claims.json, as tables and numbers of the paper."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from normscope.paper.section import Named
from normscope.paper.table import Column, Format, PageTable, Row, tabulate, text
from normscope.words import DASH, significant_or_tiny

VERDICTS = ("holds", "fails", "undecided")
NUMBERS = ("effect", "low", "high", "hedges_g", "p", "p_flips", "p_holm")
ONE_BY_ONE = {  # keys of claims.json, as a reader calls them
    "statement": "claim",
    "alone": "verdict",
    "corrected": "corrected",
    "restated": "in plain words",
    "criterion": "test",
    "as_published": "as published",
    "its_verdict": "its verdict",
}


def is_exploratory(claim: Row) -> bool:
    """Whether the test of a statement was changed after its data were seen."""
    return claim.get("changed_after") is not None  # evidence of older versions lacks the key


def shown_verdict(claim: Row) -> str:
    """The verdict as pages show it: marked where it is exploratory."""
    return f"{claim['verdict']} (exploratory)" if is_exploratory(claim) else claim["verdict"]


def change_in_words(changed: Mapping[str, Any] | None) -> str:
    """Why a verdict is exploratory; empty where it is not.

    Args:
        changed: the fields of an entry's ``changed_after``.
    """
    if changed is None:
        return ""
    return (
        f"exploratory: its test was changed after its data were seen (commit {changed['commit']};"
        f" previous verdict: {changed['was']}): {changed['why']}"
    )


def ledger_table(ledger: Mapping[str, Any], beside: Sequence[Column] = ()) -> PageTable:
    """A row per statement: published verdict, corrected verdict, and what it rests on.

    Args:
        ledger: what claims.json holds.
        beside: columns beside the corrected verdict.
    """
    documents = ledger["documents"]

    def source(claim: Row) -> str:
        document = documents[claim["document"]]
        return f"{document['author'] or document['title']}, {claim['where']}"

    columns = [
        Column("statement", text("statement")),
        Column("source", source),
        Column("published number", lambda claim: claim["published_number"] or DASH),
        Column("published", _published_verdict),
        Column("corrected", shown_verdict),
        *beside,
        Column("effect", effect),
        Column("n", _units),
        Column("Hedges g", _known("hedges_g")),
        Column("p", _known("p")),
        Column("p (flips)", _known("p_flips")),
        Column("p (Holm)", _known("p_holm")),
        Column("figure", text("figure")),
        Column("why", _why),
    ]
    return tabulate("The ledger of claims", ledger["claims"], columns)


def claims_table(title: str, claims: Sequence[Row]) -> PageTable:
    """A row per statement: what each protocol shows, in words. Columns without a word are out."""
    cells = {"alone": _alone}
    columns = [
        Column(title, cells.get(key, text(key)))
        for key, title in ONE_BY_ONE.items()
        if any(claim[key] for claim in claims)
    ]
    if any(map(_reasons, claims)):
        test = next(
            i for i, column in enumerate(columns) if column.title == ONE_BY_ONE["criterion"]
        )
        columns.insert(test + 1, Column("its numbers", _reasons))
    return tabulate(title, claims, columns)


def _why(claim: Row) -> str:
    """Why the verdict is exploratory, undecided or not the published one; a dash if it is none."""
    return "; ".join(filter(None, [_change(claim), claim["reason"]])) or DASH


def _alone(claim: Row) -> str:
    """The verdict without the correction for other statements, with its mark."""
    return "; ".join(filter(None, [claim["alone"], _change(claim)]))


def _change(claim: Row) -> str:
    return change_in_words(claim.get("changed_after"))


def _reasons(claim: Row) -> str:
    """Why bound and margin are what they are."""
    return "; ".join(
        f"{name} {claim[name]:.6g}: {claim[f'{name}_because']}"
        for name in ("bound", "margin")
        if claim[f"{name}_because"]
    )


def ledger_numbers(ledger: Mapping[str, Any]) -> Iterator[Named]:
    """Effect, interval, n and p of every statement, and how many have each verdict."""
    for claim in ledger["claims"]:
        for word in NUMBERS:
            if claim[word] is not None:
                yield ("claim", claim["key"], word), significant_or_tiny(claim[word])
        if claim["n"]:
            yield ("claim", claim["key"], "n"), str(claim["n"])
    for verdict, count in counts(ledger["claims"]).items():
        yield ("claims", verdict), str(count)
    yield ("claims",), str(len(ledger["claims"]))
    yield ("claims exploratory",), str(sum(map(is_exploratory, ledger["claims"])))
    yield ("claims tests",), str(ledger["tests"])


def verdicts(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """How many statements have each verdict, and that of every statement."""
    each = {claim["key"]: claim["verdict"] for claim in ledger["claims"]}
    return {"count": counts(ledger["claims"]), "statement": each}


def counts(claims: Iterable[Row]) -> dict[str, int]:
    """How many statements have each verdict, in the order of ``VERDICTS``."""
    given = [claim["verdict"] for claim in claims]
    return {verdict: given.count(verdict) for verdict in VERDICTS}


def _published_verdict(claim: Row) -> str:
    return DASH if claim["published_verdict"] == "none" else claim["published_verdict"]


def _units(claim: Row) -> str:
    """n of a test of chance, with its unit."""
    return f"{claim['n']} {claim['n_unit']}" if claim["n"] and claim["p"] is not None else DASH


def _known(key: str) -> Format:
    return lambda claim: DASH if claim[key] is None else significant_or_tiny(claim[key])


def effect(claim: Row) -> str:
    """The quantity with its interval, and where it was found if that is not everywhere."""
    if claim["effect"] is None:
        return DASH
    bounds = ""
    if claim["low"] is not None:
        low, high = (significant_or_tiny(claim[key]) for key in ("low", "high"))
        bounds = f" [{low}, {high}]"
    where = f" ({claim['case']})" if claim["case"] else ""
    return f"{claim['quantity']}: {significant_or_tiny(claim['effect'])}{bounds}{where}"
