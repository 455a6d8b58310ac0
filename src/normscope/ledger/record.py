"""The ledger as data (claims.json), and as tables of words."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from normscope.ledger.case import PLURALS, Case
from normscope.ledger.claim import COLUMNS
from normscope.ledger.entry import Claims, Document
from normscope.ledger.judgement import Judgement
from normscope.paper.words import significant_or_tiny

DIGITS = 9  # of numbers in claims.json, as in the workflow's tables


def record(judgement: Judgement) -> dict[str, Any]:
    """A statement with all that is known of it, ready for JSON."""
    claim, by = judgement.claim, judgement.by
    entry = claim.entry
    return {
        "key": claim.key,
        **entry.model_dump(exclude={"criterion", "published", "differs_because", "contrast"}),
        "criterion": entry.asks,
        "published_number": entry.published.number,
        "published_verdict": entry.published.verdict,
        "as_published": claim.finding.published,
        "its_verdict": claim.finding.own,
        "corrected": claim.finding.corrected,
        "alone": claim.verdict,
        "verdict": judgement.verdict,
        "reason": _reason(judgement),
        "case": by.name,
        **_numbers(by.case),
        "p": _known(by.p),
        "p_smallest": _known(by.least),
        "p_holm": _known(judgement.p_holm),
        "cases": {
            name: {**_numbers(case), "reads": case.reading()} for name, case in claim.cases.items()
        },
    }


def _numbers(case: Case) -> dict[str, Any]:
    """Effect, interval, n with its unit, and Hedges' g."""
    return {
        "effect": _known(case.effect),
        "low": _known(case.low),
        "high": _known(case.high),
        "n": case.n,
        "n_unit": PLURALS[case.unit],
        "hedges_g": _known(case.g),
    }


def _known(value: float) -> float | None:
    """The number as the tables have it; nothing for NaN."""
    return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")


def _reason(judgement: Judgement) -> str:
    """Why the verdict is not the published one; empty where it is."""
    entry = judgement.claim.entry
    if judgement.why:
        return judgement.why
    if judgement.verdict == entry.published.verdict:
        return ""
    return entry.differs_because


def ledger(claims: Claims, judgements: Sequence[Judgement], level: float) -> dict[str, Any]:
    """What claims.json holds, in the order of data/claims.yaml."""
    records = [record(j) for j in judgements]
    return {
        "level": level,
        "tests": sum(r["p"] is not None for r in records),
        "documents": {name: d.model_dump() for name, d in claims.documents.items()},
        "claims": records,
    }


def source(document: Mapping[str, Any]) -> str:
    """How a table calls a document."""
    known = Document.model_validate(document)
    return known.author or known.title


def ledger_table(found: Mapping[str, Any]) -> pd.DataFrame:
    """A row per statement: published verdict, corrected verdict, and what it rests on."""
    rows = [
        {
            "statement": c["statement"],
            "source": f"{source(found['documents'][c['document']])}, {c['where']}",
            "published number": c["published_number"] or "–",
            "published": "–" if c["published_verdict"] == "none" else c["published_verdict"],
            "corrected": c["verdict"],
            "effect": _effect(c),
            "n": f"{c['n']} {c['n_unit']}" if c["n"] and c["p"] is not None else "–",
            "Hedges g": _significant(c["hedges_g"]),
            "p (Holm)": _significant(c["p_holm"]),
            "figure": c["figure"],
            "why": c["reason"] or "–",
        }
        for c in found["claims"]
    ]
    return pd.DataFrame(rows)


def _significant(value: float | None) -> str:
    return "–" if value is None else significant_or_tiny(value)


def _effect(c: Mapping[str, Any]) -> str:
    """The quantity with its interval, and where it was found if that is not everywhere."""
    if c["effect"] is None:
        return "–"
    bounds = (
        ""
        if c["low"] is None
        else f" [{significant_or_tiny(c['low'])}, {significant_or_tiny(c['high'])}]"
    )
    where = f" ({c['case']})" if c["case"] else ""
    return f"{c['quantity']}: {significant_or_tiny(c['effect'])}{bounds}{where}"


def claim_table(found: Mapping[str, Any], documents: Sequence[str]) -> pd.DataFrame:
    """A row per statement of some documents: what each protocol shows, in words."""
    keys = ["statement", "criterion", "as_published", "its_verdict", "corrected", "alone"]
    rows = [[c[k] for k in keys] for c in found["claims"] if c["document"] in documents]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.loc[:, [name for name in table if (table[name] != "").any()]]
