"""Statements that cannot both hold: their verdicts, and the models on which both were tested."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from normscope.formats import SCIENTIFIC
from normscope.pages.cards import finding, plot_of
from normscope.pages.statements import (
    OFF_LABEL,
    UNASKED,
    document_name,
    every,
    is_unasked,
    shown_verdict,
)
from normscope.pages.table import PageTable, Quantity, Row, derived, tabulate


def disputes(
    ledger: Mapping[str, Any], traces: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The words of each dispute: ``sides``, ``outcome``, a sentence about both verdicts, and plots.

    A side has statement, document, where, quote (of the reading that decides, empty for a
    question), verdict as pages show it, and finding, what was measured. ``plots`` are the two keys
    if both statements read a table and have effects to plot, and empty otherwise.

    Args:
        ledger: the contents of claims.json.
        traces: ``tables`` of every statement that is tested, by key.
    """
    return [
        {
            "sides": [_side(ledger, claim) for claim in pair],
            "outcome": _outcome(pair),
            "plots": " ".join(claim["key"] for claim in pair) if _on_a_scale(pair, traces) else "",
        }
        for pair, _ in _pairs(ledger)
    ]


def _on_a_scale(pair: list[Row], traces: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the effects of two statements come from the same table and can be plotted."""
    if not all(plot_of(claim) for claim in pair):
        return False
    one, other = (traces[claim["key"]]["tables"] for claim in pair)
    return not set(one).isdisjoint(other)


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
    claims = {claim["key"]: claim for claim in every(ledger)}
    for dispute in ledger["disputes"]:
        yield [claims[key] for key in dispute["statements"]], dispute["shared"]


def _side(ledger: Mapping[str, Any], claim: Row) -> dict[str, str]:
    quoted = claim if is_unasked(claim) else claim["readings"][claim["reading"]]
    return {
        "statement": claim["statement"],
        "document": document_name(ledger, claim),
        "where": claim["where"],
        "quote": quoted["quote"] or "",
        "verdict": shown_verdict(claim),
        "finding": finding(claim),
    }


def _outcome(pair: list[Row]) -> str:
    holding = [claim for claim in pair if claim["verdict"] == "holds"]
    if len(holding) == 2:
        return (
            "Both hold in this run, although they cannot both be true: at least one of the two "
            "verdicts is wrong, or they are about different models."
        )
    if holding:
        limit = f" It was tested {OFF_LABEL}." if holding[0]["off_label"] else ""
        other = f" The other one {UNASKED} here." if any(map(is_unasked, pair)) else ""
        return f"Of the two, this run supports “{holding[0]['statement']}”{limit}{other}"
    if all(map(is_unasked, pair)):
        return f"Neither {UNASKED.replace('cannot', 'can')} here."
    if all(claim["verdict"] == "fails" for claim in pair):
        return "Neither holds in this run."
    return "This run does not settle it."
