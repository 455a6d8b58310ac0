"""The verdict of every statement, with Holm's correction over the statements of its document.

A statement *holds* or *fails* if all of its readings do. If some hold and others fail, its verdict
is *depends*. A reading of another size, training or text counts only if the run has such models.
A document is a family: its main claims (``primary``) are tested first, and the others
only if all main claims are decided (``gatekeep``).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from normscope.errors import Explained
from normscope.statistics.inference import gatekeep
from normscope.verdicts.case import Case, units
from normscope.verdicts.claim import TESTS, Claim, Evidence
from normscope.verdicts.contrast import find
from normscope.verdicts.entry import Claims
from normscope.verdicts.reading import Reading

NOTHING = Case.unknown("no data")


@dataclass(frozen=True)
class Support:
    """How well the data support one answer, and the case on which this rests.

    Args:
        one_sided: One-sided p-value of the answer. Deterministic cases have 0 or 1, and a case that
            could not be tested has 1.
        reading, name, case: The case.
        holds: Whether it is the p-value that the case holds, or that it fails.
        tests: The number of tests for which p is corrected.
    """

    one_sided: float
    reading: str
    name: str
    case: Case
    holds: bool
    tests: int = 1

    @property
    def is_certain(self) -> bool:
        """Whether the case is deterministic, so that no p-value belongs to it."""
        return self.case.fact is not None

    @property
    def p(self) -> float:
        """Two-sided p-value; NaN if the case is deterministic or was not tested."""
        if self.is_certain or math.isnan(self.case.p_holds):
            return math.nan
        return min(1.0, 2 * self.one_sided)

    @property
    def least(self) -> float:
        """The smallest two-sided p-value that this number of units can give; NaN without a test."""
        least = 2 * self.tests * self.case.smallest
        return least if math.isnan(least) else min(1.0, least)


@dataclass(frozen=True)
class Judgement:
    """The verdict of a statement.

    Args:
        by: The support for the most probable answer.
        p_holm: Its p-value, adjusted for all tests of the document.
        tests: The number of tests for which ``p_holm`` is adjusted.
        verdict: holds, fails, depends or undecided.
        why: Why it is undecided; empty otherwise.
    """

    claim: Claim
    by: Support
    p_holm: float
    tests: int
    verdict: str
    why: str = ""


def find_all(claims: Claims, evidence: Evidence) -> list[Claim]:
    """Test every reading by its contrast or function, in the order of the documents.

    Raises:
        Explained: A reading has no test.
    """
    statements = []
    for document, key, entry in claims:
        findings = {}
        for name, reading in entry.readings.items():
            if key not in TESTS and reading.contrast is None:
                raise Explained(f"nothing tests {key}: give it a contrast, or write its function")
            try:
                findings[name] = TESTS.get(key, find)(reading, evidence)
            except Explained as e:
                raise Explained(f"claims.{key}.readings.{name}: {e}") from None
        statements.append(Claim(document, key, entry, findings))
    return statements


def judge(claims: Sequence[Claim], alpha: float) -> list[Judgement]:
    """The verdicts, with a family-wise error rate of at most ``alpha`` in each document.

    A statement that is not deterministic counts among the tests of its document even if it could
    not be tested, so that no outcome affects their number.
    """
    answers = [_answer(claim) for claim in claims]
    counted = [_counted(by) for _, by in answers]
    adjusted, tests = [math.nan] * len(claims), [0] * len(claims)
    for document in dict.fromkeys(claim.document for claim in claims):
        family = [i for i, claim in enumerate(claims) if claim.document == document]
        tiers = [[i for i in family if claims[i].entry.primary is tier] for tier in (True, False)]
        corrected = gatekeep([[counted[i] for i in tier] for tier in tiers])
        for tier, values in zip(tiers, corrected, strict=True):
            for i, p in zip(tier, values, strict=True):
                adjusted[i], tests[i] = p, sum(not math.isnan(counted[j]) for j in tier)
    judgements = []
    for i, (verdict, by) in enumerate(answers):
        p_holm = math.nan if math.isnan(by.p) else adjusted[i]
        why = _why_undecided(claims[i], by, p_holm, tests[i], alpha)
        decided = "undecided" if why else verdict
        judgements.append(Judgement(claims[i], by, p_holm, tests[i], decided, why))
    return judgements


def _counted(by: Support) -> float:
    """The p-value for Holm's correction: 1 for an open statement, NaN for a deterministic one."""
    if by.is_certain:
        return math.nan
    return 1.0 if math.isnan(by.p) else by.p


def _answer(claim: Claim) -> tuple[str, Support]:
    """The most probable verdict, and its support.

    All readings must hold, so that the largest p-value counts, without a correction (Berger 1982);
    the same is true of failing. It depends on the reading if one of them holds and another one
    fails: each of these two p-values is the smallest, times the number of readings. Holding is then
    being beyond the margin, so that no truth makes both likely.
    """
    sides = {
        p: [
            _of_reading(name, claim.entry.readings[name], finding.cases, p)
            for name, finding in claim.asked.items()
        ]
        for p in ("p_holds", "p_fails", "p_beyond")
    }
    answers = {
        "holds": _weakest(sides["p_holds"]),
        "fails": _weakest(sides["p_fails"]),
        "depends": _weakest([_strongest(sides["p_beyond"]), _strongest(sides["p_fails"])]),
    }
    verdict = min(answers, key=lambda word: answers[word].one_sided)
    return verdict, answers[verdict]


def _of_reading(name: str, reading: Reading, cases: Mapping[str, Case], p: str) -> Support:
    """The support for a reading, or for its opposite.

    A reading about all cases holds if every case holds, and fails if one case contradicts it: its
    p-value is then the smallest, times the number of cases. For a reading about any case, holding
    and failing are exchanged. Cases that could not be tested count, with p-values of 1. A reading
    that is not refutable has no support for its opposite.

    Args:
        p: The p-value of a case: ``p_holds``, ``p_fails`` or ``p_beyond``.
    """
    holds = p != "p_fails"
    supports = [
        Support(_one_sided(case, p, holds), name, of_case, case, holds)
        for of_case, case in (cases or {"": NOTHING}).items()
    ]
    if not (holds or reading.refutable):
        supports = [replace(support, one_sided=1.0) for support in supports]
    return (_weakest if holds != (reading.holds_in == "any") else _strongest)(supports)


def _one_sided(case: Case, p: str, holds: bool) -> float:
    if case.fact is not None:
        return 0.0 if case.fact is holds else 1.0
    value: float = getattr(case, p)
    return 1.0 if math.isnan(value) else value


def _weakest(supports: Sequence[Support]) -> Support:
    """The support for an answer that needs all of them."""
    return max(supports, key=lambda support: (support.one_sided, not math.isnan(support.p)))


def _strongest(supports: Sequence[Support]) -> Support:
    """The support for an answer that needs one of them, corrected for their number."""
    best = min(supports, key=lambda support: support.one_sided)
    number = max(1, sum(not support.is_certain for support in supports))
    return replace(best, one_sided=min(1.0, number * best.one_sided), tests=number * best.tests)


def _where(claim: Claim, reading: str, case: str) -> str:
    """The reading and the case in parentheses, where a statement has several."""
    shown = reading.replace("_", " ") if len(claim.asked) > 1 else ""
    names = ", ".join(filter(None, [shown, case]))
    return f" ({names})" if names else ""


def _open(claim: Claim) -> tuple[str, Case]:
    """The first case that could not be tested, or else that is undecided, with where it is."""
    cases = [
        (_where(claim, reading, name), case)
        for reading, finding in claim.asked.items()
        for name, case in (finding.cases or {"": NOTHING}).items()
        if case.fact is None
    ]
    untested = [one for one in cases if math.isnan(one[1].p_holds)]
    undecided = [one for one in cases if one[1].answer().startswith("undecided")]
    return (untested or undecided or cases)[0]


def _why_undecided(claim: Claim, by: Support, p_holm: float, tests: int, alpha: float) -> str:
    """Why a statement is undecided, with the reading and case that keep it so; empty if decided."""
    if (by.is_certain and by.one_sided == 0) or p_holm < alpha:
        return ""
    where, case = _where(claim, by.reading, by.name), by.case
    if by.one_sided == 1:  # nothing speaks for any answer
        where, case = _open(claim)
    is_tested = case.fact is not None or not math.isnan(case.p_holds)
    if not is_tested or (by.one_sided == 1 and case.answer().startswith("undecided")):
        return case.answer().removeprefix("undecided: ") + where
    if by.least > alpha:
        return f"{units(by.case.n, by.case.unit)} give no p below {by.least:.2g}{where}"
    p = 1.0 if by.is_certain else by.p
    which = f"p = {p:.2g} for {'holding' if by.holds else 'failing'}"
    if p < alpha <= p_holm:
        corrected = f"{p_holm:.2g} after Holm's correction"
        if p_holm > min(1.0, tests * p):  # more than the correction can give
            corrected = "while the main claims of its document are undecided"
        return f"{which}, {corrected}"
    reading = claim.entry.readings[by.reading]
    if by.one_sided == 1 and not reading.refutable:
        shown = _where(claim, by.reading, "")
        return f"its cases do not show it, and cannot show that there is none{shown}"
    is_margin = reading.margin is not None and (reading.direction == "within" or not by.holds)
    against = ", tested against the margin" if is_margin else ""
    return f"{which}{against}{where}"
