"""The ledger, claims.json, as counts, numbers and a table of the paper."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from normscope.formats import INTEGER, SCIENTIFIC
from normscope.paper.section import Named
from normscope.paper.table import (
    Column,
    PageTable,
    Quantity,
    Row,
    derived,
    number,
    tabulate,
    text,
)

VERDICTS = ("holds", "fails", "depends", "undecided")
DECIDED = VERDICTS[:3]
OUTCOMES = ("confirmed", "refuted", "depends", "open")
NUMBERS = ("effect", "low", "high", "hedges_g", "p", "p_flips", "p_holm", "p_ledger")
CHANGES = {  # what is said of ``with_size`` where it is no verb
    "one size": "one size",
    "not compared": "effects of different sizes are not compared",
}
COUNTED = {  # columns of counts, with the outcomes that they add up
    "assertions": OUTCOMES,
    **{outcome: (outcome,) for outcome in OUTCOMES},
}


def is_exploratory(claim: Row) -> bool:
    """Whether the test of a statement was not fixed before its data existed."""
    return claim["status"] == "exploratory"


def shown_verdict(claim: Row) -> str:
    """The verdict as pages show it: marked if it is exploratory."""
    return f"{claim['verdict']} (exploratory)" if is_exploratory(claim) else claim["verdict"]


def is_asserted(ledger: Mapping[str, Any], claim: Row) -> bool:
    """Whether somebody asserts a statement; the others are questions of this project."""
    document = ledger["documents"][claim["document"]]
    return document["asserts"] and claim["published_verdict"] != "none"


def outcome(claim: Row) -> str:
    """What became of an assertion: one of ``OUTCOMES``.

    A statement that its author reports as refuted is confirmed if it fails.
    """
    if claim["verdict"] in ("depends", "undecided"):
        return {"depends": "depends", "undecided": "open"}[claim["verdict"]]
    return "confirmed" if claim["verdict"] == claim["published_verdict"] else "refuted"


def is_negative(claim: Row) -> bool:
    """Whether a statement is an author's negative result, and was confirmed."""
    return claim["published_verdict"] == "fails" and outcome(claim) == "confirmed"


def document_name(ledger: Mapping[str, Any], claim: Row) -> str:
    """The author of a statement's document, or its title."""
    document = ledger["documents"][claim["document"]]
    return document["author"] or document["title"]


def counts(claims: Iterable[Row]) -> dict[str, int]:
    """Counts of assertions: all of them, and those with each outcome."""
    given = Counter(map(outcome, claims))
    return {title: sum(given[name] for name in names) for title, names in COUNTED.items()}


def assertions(ledger: Mapping[str, Any]) -> list[Row]:
    """The statements that somebody asserts."""
    return [claim for claim in ledger["claims"] if is_asserted(ledger, claim)]


def tally_table(ledger: Mapping[str, Any]) -> PageTable:
    """One row per document and one for all: what became of the assertions."""
    stated: dict[str, list[Row]] = {}
    for claim in assertions(ledger):
        stated.setdefault(document_name(ledger, claim), []).append(claim)
    rows = [
        (name, *counts(group).values(), sum(map(is_negative, group)))
        for name, group in {**stated, "all documents": assertions(ledger)}.items()
    ]
    titles = (*COUNTED, "confirmed negative results")
    columns = (Column("document"), *(Column(title, INTEGER) for title in titles))
    return PageTable("What became of the assertions", columns, tuple(rows))


def ledger_table(ledger: Mapping[str, Any]) -> PageTable:
    """One row per statement: published verdict, verdict, and what it rests on."""

    def units(claim: Row) -> str | None:
        is_tested = claim["n"] and claim["p"] is not None
        return f"{claim['n']} {claim['n_unit']}" if is_tested else None

    fields = [
        text("statement"),
        derived("source", lambda claim: f"{document_name(ledger, claim)}, {claim['where']}"),
        derived("published", lambda claim: published(ledger, claim)),
        derived("verdict", shown_verdict),
        derived("effect", effect),
        derived("n", units),
        derived("reach", lambda claim: reach(claim) or None),
        number("p (Holm)", "p_holm", SCIENTIFIC),
        derived("why", lambda claim: claim["reason"] or None),
    ]
    return tabulate("The ledger of statements", ledger["claims"], fields)


def published(ledger: Mapping[str, Any], claim: Row) -> str | None:
    """The verdict of the document; None for a question of this project."""
    return claim["published_verdict"] if is_asserted(ledger, claim) else None


def ledger_numbers(ledger: Mapping[str, Any]) -> Iterator[Named]:
    """Effect, interval, n and p of every statement, and counts of outcomes."""
    for claim in ledger["claims"]:
        for word in NUMBERS:
            if claim[word] is not None:
                yield Named(("claim", claim["key"], word), claim[word], SCIENTIFIC)
        if claim["n"]:
            yield Named(("claim", claim["key"], "n"), claim["n"])
    for title, count in counts(assertions(ledger)).items():
        yield Named(("claims", title), count)
    yield Named(("claims",), len(ledger["claims"]))
    yield Named(("claims exploratory",), sum(map(is_exploratory, ledger["claims"])))
    yield Named(("claims tests",), ledger["tests"])


def verdicts(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of verdicts, and the verdict of every statement."""
    each = {claim["key"]: claim["verdict"] for claim in ledger["claims"]}
    given = list(each.values())
    return {"count": {v: given.count(v) for v in VERDICTS}, "statement": each}


def reach(claim: Row) -> str:
    """The sizes, trainings and texts of the models that a verdict is about; empty without them.

    Kept ledgers may be older than this record.
    """
    if not (extents := claim.get("reach")):
        return ""
    texts = sorted({extent["text"] for extent in extents})
    words = [
        _range([extent["blocks"] for extent in extents], "block"),
        f"d {_range([extent['d'] for extent in extents])}",
        _range([extent["steps"] for extent in extents], "step"),
        f"{len(texts)} text{'s' * (len(texts) > 1)} ({', '.join(texts)})",
    ]
    change = claim["with_size"]
    return ", ".join(words) + f"; {CHANGES.get(change, f'the effect {change} with size')}"


def _range(values: Sequence[int], unit: str = "") -> str:
    """The smallest and the largest value: 2 to 4 blocks."""
    ends = sorted({min(values), max(values)})
    words = " to ".join(f"{end:,}" for end in ends)
    return f"{words} {unit}{'s' * (ends != [1])}" if unit else words


def effect(claim: Row) -> str | None:
    """The quantity with its interval, and the case on which the verdict rests."""
    if claim["effect"] is None:
        return None
    where = f" ({claim['case']})" if claim["case"] else ""
    return f"{claim['quantity']}: {estimate(claim)}{where}"


def estimate(case: Row) -> str:
    """The effect of a case with its interval."""
    quantity = Quantity(case["effect"], case["low"], case["high"])
    return Column("effect", SCIENTIFIC).text(quantity)
