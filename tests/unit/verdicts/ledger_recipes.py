"""Statements with cases that are planted, for tests of the ledger."""

from collections.abc import Mapping
from typing import Any

import yaml
from normscope.verdicts.case import Case
from normscope.verdicts.claim import Claim, Finding
from normscope.verdicts.entry import Claims, Document, Entry, completed
from normscope.verdicts.reading import Reading

from normscope.verdicts.frozen import Plan

RAW: dict[str, Any] = {
    "study": "made",
    "where": "section 1",
    "statement": "Norms help.",
    "quantity": "difference",
    "test": "t",
    "criterion": "it is above {bound:g}",
    "direction": "greater",
    "bound": 0.0,
    "bound_because": "it is planted",
    "unit": "model",
    "figure": "loss",
    "differs_because": "one seed",
    "quote": "Norms help.",
    "readings": {"stated": {}},
}
PAPER: dict[str, Any] = {"title": "On norms", "author": "A. Author", "compared_with": "page 1"}


def document(entries: Mapping[str, Any]) -> Document:
    """The file of these entries."""
    return Document.model_validate(completed(PAPER | {"claims": entries}))


def entry(**changes: Any) -> Entry:
    """A statement; its only reading is ``stated`` unless others are given."""
    return document({"key": RAW | changes}).claims["key"]


def reading(**changes: Any) -> Reading:
    """The only reading of a statement."""
    return entry(**changes).first


def two_sided(p_holds: float, p_fails: float | None = None, n: int = 20, **changes: Any) -> Case:
    """A case of a test whose units reach any p that matters; p of both sides sum to 1."""
    values: dict[str, Any] = {"effect": 1.0, "low": 0.5, "high": 1.5, "n": n, "smallest": 2.0**-n}
    values |= {
        "p_holds": p_holds,
        "p_beyond": p_holds,
        "p_fails": 1 - p_holds if p_fails is None else p_fails,
    }
    return Case(**values | changes)


def claim(
    cases: Mapping[str, Case] | Case, key: str = "key", document: str = "paper", **changes: Any
) -> Claim:
    """A statement of one reading with one case, or several."""
    by_name = {"": cases} if isinstance(cases, Case) else cases
    words = {name: changes.pop(name) for name in ("its_verdict", "alone") if name in changes}
    finding = Finding(by_name, published="was", corrected="is", **words)
    return Claim(document, key, entry(**changes), {"stated": finding})


def read(*cases: Mapping[str, Case] | Case, **changes: Any) -> Claim:
    """A statement of several readings, by their letters."""
    by_name = [{"": case} if isinstance(case, Case) else case for case in cases]
    findings = {letter: Finding(one) for letter, one in zip("abcdef", by_name, strict=False)}
    return Claim(
        "paper", "key", entry(readings={name: {} for name in findings}, **changes), findings
    )


def book(*keys: str, **changes: Any) -> Claims:
    """Entries that differ in nothing but their key."""
    return Claims({"paper": document(dict.fromkeys(keys, RAW | changes))})


class Never(dict):
    """The digest of any statement."""

    def __missing__(self, key: str) -> str:
        return "0" * 16


UNFROZEN = Plan(Never())


def text(**changes: Any) -> str:
    """A file of one statement, ``key``; None removes."""
    raw = {k: v for k, v in (RAW | changes).items() if v is not None}
    return yaml.safe_dump(PAPER | {"claims": {"key": raw}})
