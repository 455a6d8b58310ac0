"""Statements that cannot both hold: their verdicts, and the models on which both were tested."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from normscope.formats import SCIENTIFIC
from normscope.paper.cards import found
from normscope.paper.statements import document_name, shown_verdict
from normscope.paper.table import PageTable, Quantity, Row, derived, tabulate


def disputes(ledger: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The words of each dispute: ``sides``, and ``outcome``, a sentence about both verdicts.

    A side has statement, document, where, quote (of the reading that decides, empty for a
    question), verdict as pages show it, and found, what was measured.

    Args:
        ledger: the contents of claims.json.
    """
    return [
        {"sides": [_side(ledger, claim) for claim in pair], "outcome": _outcome(pair)}
        for pair, _ in _pairs(ledger)
    ]


def dispute_table(ledger: Mapping[str, Any]) -> PageTable:
    """One row per case that both statements of a dispute test on the same models."""
    rows = [
        {**shared, "pair": pair, "names": [document_name(ledger, claim) for claim in pair]}
        for pair, cases in _pairs(ledger)
        for shared in cases
    ]

    def side(i: int) -> Callable[[Row], str]:
        return lambda row: f"{row['names'][i]}: {row['reads'][i]}"

    fields = [
        derived("models", _models),
        derived("effect", _effect, SCIENTIFIC),
        derived("n", lambda row: f"{row['n']} {row['n_unit']}" if row["n"] else None),
        derived("one side", side(0)),
        derived("the other", side(1)),
    ]
    return tabulate("Disputed statements, tested on the same models", rows, fields)


def _effect(row: Row) -> Quantity | None:
    return None if row["effect"] is None else Quantity(row["effect"], row["low"], row["high"])


def _models(row: Row) -> str:
    names = list(dict.fromkeys(name.replace("_", " ") for name in row["readings"]))
    return ", ".join(filter(None, [" / ".join(names), row["case"]]))


def _pairs(ledger: Mapping[str, Any]) -> Iterator[tuple[list[Row], list[Row]]]:
    claims = {claim["key"]: claim for claim in ledger["claims"]}
    for dispute in ledger["disputes"]:
        yield [claims[key] for key in dispute["statements"]], dispute["shared"]


def _side(ledger: Mapping[str, Any], claim: Row) -> dict[str, str]:
    return {
        "statement": claim["statement"],
        "document": document_name(ledger, claim),
        "where": claim["where"],
        "quote": claim["readings"][claim["reading"]]["quote"] or "",
        "verdict": shown_verdict(claim),
        "found": found(claim),
    }


def _outcome(pair: list[Row]) -> str:
    holding = [claim["statement"] for claim in pair if claim["verdict"] == "holds"]
    if len(holding) == 2:
        return (
            "Both hold in this run, although they cannot both be true: at least one of the two "
            "verdicts is wrong, or they are about different models."
        )
    if holding:
        return f"Of the two, this run supports “{holding[0]}”"
    if all(claim["verdict"] == "fails" for claim in pair):
        return "Neither holds in this run."
    return "This run does not settle it."
