"""The verdict of every statement, with Holm's correction over the statements of its document.

A document is a family. Its main claims (``primary``) are tested first, and the others only if all
main claims are decided (``gatekeep``).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from normscope.errors import Explained
from normscope.ledger.case import Case, units
from normscope.ledger.claim import TESTS, Claim, Evidence
from normscope.ledger.contrast import find
from normscope.ledger.entry import Claims
from normscope.statistics.estimate import ALPHA
from normscope.statistics.inference import gatekeep
from normscope.statistics.means import units_for_power

NOTHING = Case.unknown("no data")


@dataclass(frozen=True)
class Deciding:
    """The case that decides a statement.

    Args:
        name, case: For "holds" the case with the largest p-value, for "fails" the strongest
            counterexample.
        holds: Which of the two verdicts the case supports.
        p: Two-sided p-value; NaN if the case is deterministic or unknown.
        cases: The number of cases for which p is corrected.
    """

    name: str
    case: Case
    holds: bool
    p: float = math.nan
    cases: int = 1

    @property
    def least(self) -> float:
        """The smallest p-value that this number of units can give; NaN without a test."""
        least = 2 * self.cases * self.case.smallest
        return least if math.isnan(least) else min(1.0, least)

    @property
    def p_flips(self) -> float:
        """The same p-value by sign flips; NaN if there are none."""
        side = self.case.flips_holds if self.holds else self.case.flips_fails
        return side if math.isnan(side) else min(1.0, 2 * self.cases * side)


@dataclass(frozen=True)
class Judgement:
    """The verdict of a statement.

    Args:
        p_holm: The p-value of the deciding case, adjusted for all tests of its document.
        tests: The number of tests for which it is adjusted.
        verdict: holds, fails or undecided.
        why: Why it is undecided; empty otherwise.
        units: The number of units that would detect an effect of the observed size with a power of
            90%; NaN if the statement is decided or has no test over units.
    """

    claim: Claim
    by: Deciding
    p_holm: float
    tests: int
    verdict: str
    why: str = ""
    units: float = math.nan

    @property
    def flips_disagree(self) -> bool:
        """Whether sign flips and the t-test disagree at the level of one test."""
        p, flips = self.by.p, self.by.p_flips
        return not math.isnan(p + flips) and (p < ALPHA) != (flips < ALPHA)


def find_all(claims: Claims, evidence: Evidence) -> list[Claim]:
    """Test every statement by its function or contrast, in the order of the documents.

    Raises:
        Explained: A statement has no test.
    """
    statements = []
    for document, key, entry in claims:
        if key not in TESTS and entry.contrast is None:
            raise Explained(f"nothing tests {key}: give it a contrast, or write its function")
        try:
            finding = TESTS.get(key, find)(entry, evidence)
        except Explained as e:
            raise Explained(f"claims.{key}: {e}") from None
        statements.append(Claim(document, key, entry, finding))
    return statements


def judge(claims: Sequence[Claim], alpha: float) -> list[Judgement]:
    """The verdicts, with a family-wise error rate of at most ``alpha`` in each document.

    A statement that is not deterministic counts among the tests of its document even if it could
    not be tested, so that no outcome affects their number.
    """
    deciding = [_deciding(claim) for claim in claims]
    adjusted = [math.nan] * len(claims)
    tests = [0] * len(claims)
    for document in dict.fromkeys(claim.document for claim in claims):
        family = [i for i, claim in enumerate(claims) if claim.document == document]
        tiers = [[i for i in family if claims[i].entry.primary is tier] for tier in (True, False)]
        corrected = gatekeep([[_counted(deciding[i]) for i in tier] for tier in tiers])
        for tier, values in zip(tiers, corrected, strict=True):
            for i, p in zip(tier, values, strict=True):
                adjusted[i] = math.nan if math.isnan(deciding[i].p) else p
                tests[i] = sum(deciding[j].case.fact is None for j in tier)
    return [
        _judged(claim, by, p_holm, n, alpha)
        for claim, by, p_holm, n in zip(claims, deciding, adjusted, tests, strict=True)
    ]


def _counted(by: Deciding) -> float:
    """The p-value for Holm's correction: 1 for an open statement, NaN for a deterministic one."""
    is_open = math.isnan(by.p) and by.case.fact is None
    return 1.0 if is_open else by.p


def _deciding(claim: Claim) -> Deciding:
    """The case that decides a statement.

    A statement about all cases holds if every case holds: its p-value is the largest, without a
    correction (Berger 1982). It fails if one case contradicts it: its p-value is the smallest,
    times the number of cases. Cases that could not be tested count, and keep the statement from
    holding. For a statement about any case, holding and failing are exchanged.
    """
    entry, cases = claim.entry, claim.deciding
    for name, case in cases.items():
        if case.fact is False:
            return Deciding(name, case, holds=False)
    tested = {name: case for name, case in cases.items() if not math.isnan(case.p_holds)}
    if not tested:
        known = [name for name, case in cases.items() if case.fact] or list(cases)
        name = known[0] if known else ""
        return Deciding(name, cases.get(name, NOTHING), holds=True)
    p_for, p_against = (
        {n: c.p_holds for n, c in tested.items()},
        {n: c.p_fails for n, c in tested.items()},
    )
    is_any = entry.holds_in == "any"
    in_all, in_one = (p_against, p_for) if is_any else (p_for, p_against)
    weakest, strongest = max(in_all, key=in_all.__getitem__), min(in_one, key=in_one.__getitem__)
    uncertain = sum(case.fact is None for case in cases.values())
    whole = in_all[weakest] if len(tested) == uncertain else 1.0
    part = uncertain * in_one[strongest]
    is_whole = whole <= part
    name, times = (weakest, 1) if is_whole else (strongest, uncertain)
    p = min(1.0, 2 * min(whole, part))
    return Deciding(name, tested[name], is_whole != is_any, p, times)


def _unknown(cases: Mapping[str, Case]) -> str:
    """Why the first unanswered case has no answer, with its name; empty if all are answered."""
    for name, case in (cases or {"": NOTHING}).items():
        reading = case.reading()
        if case.fact is None and math.isnan(case.p_holds):
            return reading.removeprefix("undecided: ") + (f" ({name})" if name else "")
    return ""


def _judged(claim: Claim, by: Deciding, p_holm: float, tests: int, alpha: float) -> Judgement:
    """The verdict, or the reason for its absence and the number of units that would give one."""
    verdict, why = _verdict(claim, by, p_holm, alpha)
    needed = math.nan
    if verdict == "undecided" and not math.isnan(by.case.standardized):
        needed = units_for_power(by.case.standardized, alpha / (2 * by.cases * max(tests, 1)))
    return Judgement(claim, by, p_holm, tests, verdict, why, needed)


def _verdict(claim: Claim, by: Deciding, p_holm: float, alpha: float) -> tuple[str, str]:
    """The verdict, and why the statement is undecided."""
    is_decided = by.case.fact is not None or p_holm < alpha
    unknown = _unknown(claim.deciding)
    if is_decided and not (unknown and by.holds != (claim.entry.holds_in == "any")):
        return ("holds" if by.holds else "fails"), ""
    if unknown or math.isnan(by.p):
        return "undecided", unknown or "no data"
    if by.least > alpha:
        return "undecided", f"{units(by.case.n, by.case.unit)} give no p below {by.least:.2g}"
    if by.p < alpha <= p_holm:
        return "undecided", f"p is {by.p:.2g}, among its document's statements {p_holm:.2g}"
    against = ", against the margin" if is_against_margin(claim, by) else ""
    return "undecided", f"p is {by.p:.2g}{against}"


def is_against_margin(claim: Claim, by: Deciding) -> bool:
    """Whether the deciding case is compared with the margin instead of the bound."""
    return claim.entry.margin is not None and (claim.entry.direction == "within" or not by.holds)
