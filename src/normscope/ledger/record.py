"""The content of claims.json."""

import math
from collections.abc import Sequence
from typing import Any

from normscope.ledger.case import PLURALS, Case
from normscope.ledger.claim import Finding
from normscope.ledger.disputes import disputes
from normscope.ledger.entry import Claims
from normscope.ledger.frozen import Registry
from normscope.ledger.judgement import Judgement
from normscope.ledger.reach import reach_of
from normscope.ledger.reading import Reading

NOT_ASKED = "not asked in this run"  # of a reading about models that the run does not train
DIGITS = 9  # of numbers in claims.json, as in the workflow's tables


def record(judgement: Judgement, registry: Registry) -> dict[str, Any]:
    """A statement with its readings, tests and verdict, ready for JSON.

    The numbers of the statement are those of the case on which its verdict rests.
    """
    claim, by = judgement.claim, judgement.by
    entry = claim.entry
    seeds = {name: _seeds(finding) for name, finding in claim.findings.items()}
    known = [name for name, finding in claim.findings.items() if _is_known(finding)]
    every = sorted({seed for of_reading in seeds.values() for seed in of_reading})
    is_formula = all(reading.unit == "formula" for reading in entry.readings.values())
    whys = [registry.why_exploratory(claim.key, seeds[name]) for name in known]
    why = next(filter(None, whys), "") if known else "it has no data"
    p, numbers = _known(by.p), _numbers(by.case)
    if is_formula and not every:
        status, why = "deterministic", ""
    elif registry.is_confirmed(claim.key, every, numbers["n"], p):
        status, why = "confirmatory", ""
    else:
        status = "exploratory" if why else "confirmatory"
    return {
        "key": claim.key,
        "document": claim.document,
        **entry.model_dump(exclude={"published", "differs_because", "readings"}),
        "published_number": entry.published.number,
        "published_verdict": entry.published.verdict,
        "verdict": judgement.verdict,
        "reason": _reason(judgement),
        "status": status,
        "exploratory_because": why,
        "digest": registry.digests[claim.key],
        "seeds": every,
        **_reach(judgement),
        "reading": by.reading,
        "case": by.name,
        "quantity": entry.readings[by.reading].quantity,
        **numbers,
        "p": p,
        "p_smallest": _known(by.least),
        "p_flips": _known(by.p_flips),
        "p_holm": _known(judgement.p_holm),
        "p_ledger": _known(judgement.p_ledger),
        "tests": judgement.tests,
        "readings": {
            name: _reading(reading, claim.findings[name], is_asked=name in claim.asked)
            for name, reading in entry.readings.items()
        },
    }


def _seeds(finding: Finding) -> set[int]:
    return {seed for case in finding.cases.values() for seed in case.seeds}


def _is_known(finding: Finding) -> bool:
    """Whether there are data on a reading."""
    return any(case.n for case in finding.cases.values())


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
        "alone": finding.answer if is_asked else NOT_ASKED,
        "cases": {
            name: {
                **_numbers(case),
                "reads": case.answer(),
                "extents": [extent._asdict() for extent in case.extents],
            }
            for name, case in finding.cases.items()
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
    """Why the statement is undecided, depends on its reading, or differs from its document."""
    entry = judgement.claim.entry
    differs = "" if judgement.verdict == entry.published.verdict else entry.differs_because
    words = [judgement.why or differs]
    if judgement.verdict == "depends":
        answers = (f"{name} {f.answer}" for name, f in judgement.claim.asked.items())
        words.insert(0, "; ".join(answers))
    if judgement.flips_disagree:
        words.append(f"sign flips disagree: p {judgement.by.p_flips:.2g}")
    return "; ".join(filter(None, words))


def ledger(
    claims: Claims, judgements: Sequence[Judgement], level: float, registry: Registry
) -> dict[str, Any]:
    """The content of claims.json, in the order of the documents.

    Of two statements in a dispute each is listed under ``contradicts`` of the other one.
    """
    records = [record(j, registry) for j in judgements]
    for row in records:
        disputed = [set(pair) for pair in claims.disputes if row["key"] in pair]
        row["contradicts"] = [other for pair in disputed for other in pair - {row["key"]}]
    return {
        "level": level,
        "settings": registry.settings,
        "frozen": None if registry.frozen is None else registry.frozen.commit,
        "tests": sum(r["p"] is not None for r in records),
        "documents": {
            name: d.model_dump(exclude={"claims"}) for name, d in claims.documents.items()
        },
        "disputes": disputes(claims, {row["key"]: row for row in records}),
        "claims": records,
    }
