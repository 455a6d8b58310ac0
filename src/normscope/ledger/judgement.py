"""The verdict of every statement, with Holm's correction over those of its document.

A document is a family: what it stands on (``primary``) is tested first, and the others only where
all of that is decided (``gatekeep``).
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
        name, case: for "holds" the weakest of all, for "fails" the strongest counterexample.
        holds: which of the two the case speaks for.
        p: two-sided; NaN where chance has no part, or nothing is known.
        cases: that p is corrected for.
    """

    name: str
    case: Case
    holds: bool
    p: float = math.nan
    cases: int = 1

    @property
    def least(self) -> float:
        """The least p that so many units can give; NaN without a test."""
        least = 2 * self.cases * self.case.smallest
        return least if math.isnan(least) else min(1.0, least)

    @property
    def p_flips(self) -> float:
        """The same p by sign flips; NaN where there are none."""
        side = self.case.flips_holds if self.holds else self.case.flips_fails
        return side if math.isnan(side) else min(1.0, 2 * self.cases * side)


@dataclass(frozen=True)
class Judgement:
    """A statement's line in the ledger.

    Args:
        p_holm: the deciding case's p, adjusted for all tests of its document.
        tests: of its document, among which its own was.
        verdict: holds, fails or undecided.
        why: why it is undecided; empty otherwise.
        units: with which an effect of the size that was seen is found with 90% power; NaN where it
            is decided, or has no test over units.
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
        """Whether sign flips, at the level of one test, give another answer than t does."""
        p, flips = self.by.p, self.by.p_flips
        return not math.isnan(p + flips) and (p < ALPHA) != (flips < ALPHA)


def find_all(claims: Claims, evidence: Evidence) -> list[Claim]:
    """Every statement with what its function or its contrast finds, in the order of the documents.

    Raises:
        Explained: nothing tests a statement.
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
    """Every statement at level ``alpha``, which is kept for all of a document together.

    A statement that chance has a part in counts among those of its document whether it could be
    tested or not, so that no outcome decides how many there are.
    """
    deciding = [_deciding(claim) for claim in claims]
    adjusted = [math.nan] * len(claims)
    tests = [0] * len(claims)
    for document in dict.fromkeys(claim.document for claim in claims):
        own = [i for i, claim in enumerate(claims) if claim.document == document]
        tiers = [[i for i in own if claims[i].entry.primary is tier] for tier in (True, False)]
        families = gatekeep([[_counted(deciding[i]) for i in tier] for tier in tiers])
        for tier, family in zip(tiers, families, strict=True):
            for i, p in zip(tier, family, strict=True):
                adjusted[i] = math.nan if math.isnan(deciding[i].p) else p
                tests[i] = sum(deciding[j].case.fact is None for j in tier)
    return [
        _judged(claim, by, p_holm, n, alpha)
        for claim, by, p_holm, n in zip(claims, deciding, adjusted, tests, strict=True)
    ]


def _counted(by: Deciding) -> float:
    """The p of a statement among those of its document: 1 of one that is open; NaN of a fact."""
    is_open = math.isnan(by.p) and by.case.fact is None
    return 1.0 if is_open else by.p


def _deciding(claim: Claim) -> Deciding:
    """What decides, of the cases that the verdict rests on.

    A statement about all of them holds if it does in each: its p is the largest, which needs no
    correction (Berger 1982). It fails if one contradicts it: that p is the smallest, times their
    number. Cases without an answer count among these, and keep it from holding. A statement about
    any of them is the other way round.
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
    """Why the first case without an answer has none, with its name; empty if all have one."""
    for name, case in (cases or {"": NOTHING}).items():
        reading = case.reading()
        if case.fact is None and math.isnan(case.p_holds):
            return reading.removeprefix("undecided: ") + (f" ({name})" if name else "")
    return ""


def _judged(claim: Claim, by: Deciding, p_holm: float, tests: int, alpha: float) -> Judgement:
    """The verdict, why there is none, and how many units would give one."""
    verdict, why = _verdict(claim, by, p_holm, alpha)
    needed = math.nan
    if verdict == "undecided" and not math.isnan(by.case.standardized):
        needed = units_for_power(by.case.standardized, alpha / (2 * by.cases * max(tests, 1)))
    return Judgement(claim, by, p_holm, tests, verdict, why, needed)


def _verdict(claim: Claim, by: Deciding, p_holm: float, alpha: float) -> tuple[str, str]:
    """The verdict, and why there is none."""
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
    """Whether what decides is compared with the margin, and not with the bound."""
    return claim.entry.margin is not None and (claim.entry.direction == "within" or not by.holds)
