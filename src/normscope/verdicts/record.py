"""The content of claims.json."""

import math
from collections.abc import Sequence
from typing import Any

from normscope.verdicts.case import PLURALS, Case
from normscope.verdicts.claim import Claim, Finding
from normscope.verdicts.disputes import disputes
from normscope.verdicts.entry import Claims, Unasked
from normscope.verdicts.frozen import Plan
from normscope.verdicts.judgement import Judgement
from normscope.verdicts.reach import reach_of
from normscope.verdicts.reading import Reading

NOT_ASKED = "not asked in this run"  # of a reading about models that the run does not train
DIGITS = 9  # of numbers in claims.json, as in the workflow's tables


def record(judgement: Judgement, plan: Plan) -> dict[str, Any]:
    """A statement with its readings, tests and verdict, ready for JSON.

    The numbers of the statement are those of the case on which its verdict rests.
    """
    claim, by = judgement.claim, judgement.by
    entry = claim.entry
    readings = {
        name: _reading(reading, claim.findings[name], is_asked=name in claim.asked)
        for name, reading in entry.readings.items()
    }
    return {
        "key": claim.key,
        "document": claim.document,
        "off_label": all(entry.readings[name].off_label for name in claim.asked),
        "uncompared": any(entry.readings[name].uncompared for name in claim.asked),
        **entry.model_dump(exclude={"published", "limits", "readings"}),
        "published_number": entry.published.number,
        "published_verdict": entry.published.verdict,
        "verdict": judgement.verdict,
        "reason": _reason(judgement),
        "limits": entry.limits or "",
        "post_hoc": _why_post_hoc(claim, plan),
        "digest": plan.digests[claim.key],
        **_reach(judgement),
        "reading": by.reading,
        "case": by.name,
        "quantity": entry.readings[by.reading].quantity,
        **_numbers(by.case),
        "p": _known(by.p),
        "p_smallest": _known(by.least),
        "p_holm": _known(judgement.p_holm),
        "tests": judgement.tests,
        "readings": readings,
    }


def _why_post_hoc(claim: Claim, plan: Plan) -> str:
    """Why a verdict is post hoc; empty without data, and for formulas, which no data precede."""
    why = ""
    for name, finding in claim.findings.items():
        seeds = {seed for case in finding.cases.values() for seed in case.seeds}
        is_formula = claim.entry.readings[name].unit == "formula" and not seeds
        if is_formula or not any(case.n or case.seeds for case in finding.cases.values()):
            continue
        of_prompts = "" if seeds else "its data existed before its test"
        why = why or plan.why_post_hoc(claim.key) or of_prompts
    return why


def _reach(judgement: Judgement) -> dict[str, Any]:
    """The extents that the verdict is about, and how effects change over sizes."""
    reach = reach_of(judgement)
    return {
        "reach": [extent._asdict() for extent in reach.extents],
        "with_size": reach.with_size,
        "changing": reach.changing,
    }


def _reading(reading: Reading, finding: Finding, *, is_asked: bool) -> dict[str, Any]:
    """A reading with its test, and what it found case by case."""
    return {
        **reading.model_dump(exclude={"criterion", "contrast"}),
        "criterion": reading.asks,
        "as_published": finding.published,
        "its_verdict": finding.its_verdict,
        "corrected": finding.corrected,
        "alone": _alone(reading, finding) if is_asked else NOT_ASKED,
        "cases": {
            name: {
                **_numbers(case),
                "reads": case.answer(),
                "extents": [extent._asdict() for extent in case.extents],
            }
            for name, case in finding.cases.items()
        },
    }


def _alone(reading: Reading, finding: Finding) -> str:
    """The answer of a reading by itself; its cases cannot refute that something exists."""
    is_open = finding.answer == "fails" and not reading.refutable
    return "undecided" if is_open else finding.answer


def _numbers(case: Case) -> dict[str, Any]:
    """Effect, interval, n with its unit, and the standard deviation over units."""
    return {
        "effect": _known(case.effect),
        "low": _known(case.low),
        "high": _known(case.high),
        "n": case.n,
        "n_unit": PLURALS[case.unit],
        "spread": _known(case.spread),
    }


def _known(value: float) -> float | None:
    """The number with ``DIGITS`` digits; None for NaN and infinity."""
    return None if not math.isfinite(value) else float(f"{value:.{DIGITS}g}")


def _reason(judgement: Judgement) -> str:
    """Why it is undecided, or the answers of the readings on which it depends."""
    entry, words = judgement.claim.entry, [judgement.why]
    if judgement.verdict == "depends":
        findings = judgement.claim.asked.items()
        answers = [(name, _alone(entry.readings[name], f)) for name, f in findings]
        words.insert(0, "; ".join(f"{name.replace('_', ' ')} {said}" for name, said in answers))
    return "; ".join(filter(None, words))


def _unasked(document: str, key: str, entry: Unasked) -> dict[str, Any]:
    """A statement that is not tested, with those keys of a tested one that it can have."""
    return {
        "key": key,
        "document": document,
        "off_label": False,
        **entry.model_dump(exclude={"published"}),
        "published_number": entry.published.number,
        "published_verdict": entry.published.verdict,
        "verdict": "unasked",
    }


def ledger(
    claims: Claims, judgements: Sequence[Judgement], level: float, plan: Plan
) -> dict[str, Any]:
    """The content of claims.json, in the order of the documents.

    Of two statements in a dispute each is listed under ``contradicts`` of the other one, and
    ``refined_by`` lists those that refine a statement.
    """
    records = [record(j, plan) for j in judgements]
    unasked = [_unasked(d, k, e) for d, k, e in claims.every if isinstance(e, Unasked)]
    every = {key: entry for _, key, entry in claims.every}
    disputed_pairs = claims.disputes
    for row in (*records, *unasked):
        disputed = [set(pair) for pair in disputed_pairs if row["key"] in pair]
        row["contradicts"] = [other for pair in disputed for other in pair - {row["key"]}]
        row["refines"] = [other for other in row["refines"] if other in every]
        row["refined_by"] = [key for key, entry in every.items() if row["key"] in entry.refines]
    return {
        "level": level,
        "settings": plan.settings,
        "frozen": None if plan.frozen is None else plan.frozen.commit,
        "tests": sum(r["p"] is not None for r in records),
        "documents": {
            name: d.model_dump(exclude={"statements"}) for name, d in claims.documents.items()
        },
        "disputes": disputes(claims, {row["key"]: row for row in records}),
        "claims": records,
        "unasked": unasked,
    }
