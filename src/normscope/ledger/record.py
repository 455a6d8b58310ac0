"""The content of claims.json."""

import math
from collections.abc import Sequence
from typing import Any

from normscope.ledger.case import PLURALS, Case, units
from normscope.ledger.entry import Claims
from normscope.ledger.judgement import Judgement, is_against_margin

DIGITS = 9  # of numbers in claims.json, as in the workflow's tables


def record(judgement: Judgement) -> dict[str, Any]:
    """A statement with its entry, test and verdict, ready for JSON."""
    claim, by = judgement.claim, judgement.by
    entry = claim.entry
    return {
        "key": claim.key,
        "document": claim.document,
        **entry.model_dump(exclude={"criterion", "published", "differs_because", "contrast"}),
        "criterion": entry.asks,
        "published_number": entry.published.number,
        "published_verdict": entry.published.verdict,
        "as_published": claim.finding.published,
        "its_verdict": claim.finding.its_verdict,
        "corrected": claim.finding.corrected,
        "alone": claim.verdict,
        "verdict": judgement.verdict,
        "reason": _reason(judgement),
        "case": by.name,
        **_numbers(by.case),
        "p": _known(by.p),
        "p_smallest": _known(by.least),
        "p_flips": _known(by.p_flips),
        "p_holm": _known(judgement.p_holm),
        "tests": judgement.tests,
        "units_needed": _known(judgement.units),
        "models_a_unit": by.case.models,
        "cases": {
            name: {**_numbers(case), "reads": case.reading()} for name, case in claim.cases.items()
        },
    }


def _numbers(case: Case) -> dict[str, Any]:
    """Effect, interval, n with its unit, Hedges' g, and the standard deviation over units."""
    return {
        "effect": _known(case.effect),
        "low": _known(case.low),
        "high": _known(case.high),
        "n": case.n,
        "n_unit": PLURALS[case.unit],
        "hedges_g": _known(case.g),
        "spread": _known(case.spread),
    }


def _known(value: float) -> float | None:
    """The number with ``DIGITS`` digits; None for NaN and infinity."""
    return None if not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


def _reason(judgement: Judgement) -> str:
    """Why the statement is undecided or differs from the published verdict; empty otherwise.

    Includes the number of units that would decide it, and whether sign flips disagree.
    """
    entry = judgement.claim.entry
    differs = "" if judgement.verdict == entry.published.verdict else entry.differs_because
    words = [judgement.why or differs]
    if math.isfinite(judgement.units):
        needed = units(math.ceil(judgement.units), judgement.by.case.unit)
        is_margin = is_against_margin(judgement.claim, judgement.by)
        aim = "to tell it from the margin" if is_margin else "an effect of this size"
        words.append(f"{aim} takes about {needed}")
    if judgement.flips_disagree:
        words.append(f"sign flips disagree: p {judgement.by.p_flips:.2g}")
    return "; ".join(filter(None, words))


def ledger(claims: Claims, judgements: Sequence[Judgement], level: float) -> dict[str, Any]:
    """The content of claims.json, in the order of the documents."""
    records = [record(j) for j in judgements]
    return {
        "level": level,
        "tests": sum(r["p"] is not None for r in records),
        "documents": {
            name: d.model_dump(exclude={"claims"}) for name, d in claims.documents.items()
        },
        "claims": records,
    }
