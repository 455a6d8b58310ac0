"""The ledger, claims.json, as counts, numbers and a table of the paper."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from normscope.formats import INTEGER, SCIENTIFIC
from normscope.pages.table import (
    Column,
    Number,
    PageTable,
    Quantity,
    Row,
    derived,
    tabulate,
    text,
)

VERDICTS = ("holds", "fails", "depends", "undecided")
DECIDED = VERDICTS[:3]
OUTCOMES = ("confirmed", "refuted", "depends", "open")
OFF_LABEL, UNASKED = "off-label", "cannot be asked"
ONE = {"families": "family"}  # others lose their s
CHANGES = {  # what is said of ``with_size`` where it is no verb
    "one size": "one size",
    "not compared": "effects of different sizes are not compared",
    "stays": "no change of the effect with size was found",
}
COUNTED = {  # columns of counts, with what they add up
    "assertions": (*OUTCOMES, OFF_LABEL),
    **{group: (group,) for group in (*OUTCOMES, OFF_LABEL, UNASKED)},
}


def has_data(reading: Row) -> bool:
    """Whether this run measured anything that a reading is about."""
    return any(case["n"] for case in reading["cases"].values())


def is_post_hoc(claim: Row) -> bool:
    """Whether the test of a statement with data was not fixed before these existed."""
    return bool(claim.get("post_hoc")) and any(map(has_data, claim["readings"].values()))


def is_fact(claim: Row) -> bool:
    """Whether a formula or a counterexample decides a statement, without a test."""
    return claim["n_unit"] == "facts"


def is_unasked(claim: Row) -> bool:
    """Whether a statement cannot be tested here."""
    return claim["verdict"] == "unasked"


def every(ledger: Mapping[str, Any]) -> list[Row]:
    """The statements that are tested, and those that cannot be, in the order of the documents."""
    order = list(ledger["documents"])
    rows = [*ledger["claims"], *ledger["unasked"]]
    return sorted(rows, key=lambda claim: order.index(claim["document"]))


def shown_verdict(claim: Row) -> str:
    """The verdict as pages show it: with all that limits it."""
    words = [f"{UNASKED} here" if is_unasked(claim) else claim["verdict"]]
    words += [OFF_LABEL] * claim["off_label"] + ["quote not compared"] * bool(claim["uncompared"])
    return ", ".join(words) + " (post hoc)" * is_post_hoc(claim)


def is_asserted(ledger: Mapping[str, Any], claim: Row) -> bool:
    """Whether somebody asserts a statement; the others are questions of this project."""
    document = ledger["documents"][claim["document"]]
    return document["asserts"] and claim["published_verdict"] != "none"


def outcome(claim: Row) -> str:
    """What became of an assertion: one of ``OUTCOMES``.

    A statement that its author reports as refuted is confirmed if it fails. What was tested
    off-label has an outcome too, and is counted apart.
    """
    if claim["verdict"] in ("depends", "undecided"):
        return {"depends": "depends", "undecided": "open"}[claim["verdict"]]
    return "confirmed" if claim["verdict"] == claim["published_verdict"] else "refuted"


def is_negative(claim: Row) -> bool:
    """Whether a statement is an author's negative result, and was confirmed."""
    return claim["published_verdict"] == "fails" and _group(claim) == "confirmed"


def document_name(ledger: Mapping[str, Any], claim: Row) -> str:
    """The author of a statement's document, or its title."""
    document = ledger["documents"][claim["document"]]
    return document["author"] or document["title"]


def counts(claims: Iterable[Row]) -> dict[str, int]:
    """Counts of assertions: those that were tested, by outcome or off-label, and the others."""
    given = Counter(map(_group, claims))
    return {title: sum(given[name] for name in names) for title, names in COUNTED.items()}


def decided_by(claims: Iterable[Row], group: str) -> dict[str, int]:
    """How many assertions of a group, such as ``confirmed``, rest on each unit: seeds, formulas."""
    return dict(Counter(c["n_unit"] for c in claims if _group(c) == group).most_common())


def _group(claim: Row) -> str:
    """The column in which an assertion is counted."""
    if is_unasked(claim):
        return UNASKED
    return OFF_LABEL if claim["off_label"] else outcome(claim)


def assertions(ledger: Mapping[str, Any]) -> list[Row]:
    """The statements that somebody asserts, in quotes that were compared with the document."""
    stated = (claim for claim in every(ledger) if is_asserted(ledger, claim))
    return [claim for claim in stated if not claim["uncompared"]]


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

    def replicates(claim: Row) -> str | None:
        return units(claim) if claim["n"] and claim["p"] is not None else None

    def tested(cell: Callable[[Row], Any]) -> Callable[[Row], Any]:
        return lambda claim: None if is_unasked(claim) else cell(claim)

    fields = [
        text("statement"),
        derived("source", lambda claim: f"{document_name(ledger, claim)}, {claim['where']}"),
        derived("published", lambda claim: published(ledger, claim)),
        derived("verdict", shown_verdict),
        derived("effect", tested(effect)),
        derived("n", tested(replicates)),
        derived("reach", tested(lambda claim: reach(claim) or None)),
        derived("p (Holm)", tested(itemgetter("p_holm")), SCIENTIFIC),
        derived("why", lambda claim: why(claim) or None),
    ]
    return tabulate("The ledger of statements", every(ledger), fields)


def explanations(claim: Row) -> dict[str, str]:
    """Why a verdict differs from the published one, or may, and what it leaves open, by name.

    Where it agrees, the first is a note, and where nothing was published, both are limits.
    """
    because, limits = claim["differs_because"], claim["limits"]
    if claim["published_verdict"] == "none":
        because, limits = "", "; ".join(filter(None, [because, limits]))
    term = "why it differs" if claim["verdict"] in DECIDED else "why it may differ"
    if claim["verdict"] == claim["published_verdict"]:
        term = "note"
    return {term: said for term, said in {term: because, "limits": limits}.items() if said}


def why(claim: Row) -> str:
    """Why a statement cannot be tested, or why its verdict is as it is, with ``explanations``."""
    if is_unasked(claim):
        return claim["cannot_be_asked"]
    named = [f"{term}: {said}" for term, said in explanations(claim).items()]
    return "; ".join(filter(None, [claim["reason"], *named]))


def published(ledger: Mapping[str, Any], claim: Row) -> str | None:
    """The verdict of the document; None for a question of this project."""
    return claim["published_verdict"] if is_asserted(ledger, claim) else None


def ledger_numbers(ledger: Mapping[str, Any]) -> dict[str, Number]:
    """Counts of tests, verdicts and outcomes."""
    claims = ledger["claims"]
    found = {f"claims {title}": count for title, count in counts(assertions(ledger)).items()}
    found |= {"claims": len(claims), "claims tests": ledger["tests"]}
    found["claims post hoc"] = sum(map(is_post_hoc, claims))
    return {name: Number(count, INTEGER) for name, count in found.items()}


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
    with_size = "" if " between " in change else " with size"
    return ", ".join(words) + f"; {CHANGES.get(change, f'the effect {change}{with_size}')}"


def _range(values: Sequence[int], unit: str = "") -> str:
    """The smallest and the largest value: 2 to 4 blocks."""
    ends = sorted({min(values), max(values)})
    words = " to ".join(f"{end:,}" for end in ends)
    return f"{words} {unit}{'s' * (ends != [1])}" if unit else words


def effect(claim: Row) -> str | None:
    """The quantity with its interval, and the case on which the verdict rests."""
    if claim["effect"] is None:
        return None
    where = f" ({place})" if (place := decisive(claim)) else ""
    return f"{claim['quantity']}: {estimate(claim)}{where}"


def decisive(claim: Row) -> str:
    """The reading and the case on which a verdict rests; empty if there is one of each."""
    reading = claim["reading"].replace("_", " ") * (len(claim["readings"]) > 1)
    return ", ".join(filter(None, [reading, claim["case"]]))


def units(claim: Row) -> str:
    """The number of units of replication: 12 seeds, 1 family."""
    n, unit = claim["n"], claim["n_unit"]
    return f"{n} {ONE.get(unit, unit.removesuffix('s')) if n == 1 else unit}"


def estimate(case: Row) -> str:
    """The effect of a case with its interval."""
    quantity = Quantity(case["effect"], case["low"], case["high"])
    return Column("effect", SCIENTIFIC).text(quantity)
