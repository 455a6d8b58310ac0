"""The verdict of every statement, with Holm's correction over all that are tested."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from normscope.errors import Explained
from normscope.ledger.case import Case, units
from normscope.ledger.claim import TESTS, Claim, Evidence
from normscope.ledger.contrast import find
from normscope.ledger.entry import Claims, Entry
from normscope.statistics.estimate import seeds_needed
from normscope.statistics.inference import holm

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


@dataclass(frozen=True)
class Judgement:
    """A statement's line in the ledger.

    Args:
        p_holm: the deciding case's p, adjusted for all tests of the ledger.
        verdict: holds, fails or undecided.
        why: why it is undecided; empty otherwise.
    """

    claim: Claim
    by: Deciding
    p_holm: float
    verdict: str
    why: str = ""


def find_all(claims: Claims, evidence: Evidence) -> list[Claim]:
    """Every statement with what its function or its contrast finds, in the order of the file.

    Raises:
        Explained: nothing tests a statement.
    """
    statements = []
    for key, entry in claims.claims.items():
        if key not in TESTS and entry.contrast is None:
            raise Explained(f"nothing tests {key}: give it a contrast, or write its function")
        statements.append(Claim(key, entry, TESTS.get(key, find)(entry, evidence)))
    return statements


def judge(claims: Sequence[Claim], alpha: float) -> list[Judgement]:
    """Every statement at level ``alpha``, held for all of them together (Holm 1979)."""
    deciding = [_deciding(claim.entry, claim.cases) for claim in claims]
    adjusted = holm([d.p for d in deciding])
    tests = sum(not math.isnan(d.p) for d in deciding)
    judgements = []
    for claim, by, p_holm in zip(claims, deciding, adjusted, strict=True):
        verdict, why = _verdict(claim, by, p_holm, tests, alpha)
        judgements.append(Judgement(claim, by, p_holm, verdict, why))
    return judgements


def _deciding(entry: Entry, cases: Mapping[str, Case]) -> Deciding:
    """What decides, of all cases.

    A statement about all of them holds if it does in each: its p is the largest, which needs no
    correction (Berger 1982). It fails if one contradicts it: that p is the smallest, times their
    number. Cases without an answer count among these, and keep it from holding. A statement about
    any of them is the other way round.
    """
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
        if case.open:
            return case.open.removeprefix("undecided: ") + (f" ({name})" if name else "")
    return ""


def _verdict(
    claim: Claim, by: Deciding, p_holm: float, tests: int, alpha: float
) -> tuple[str, str]:
    """The verdict, and why there is none."""
    is_decided = by.case.fact is not None or p_holm < alpha
    unknown = _unknown(claim.cases)
    if is_decided and not (unknown and by.holds != (claim.entry.holds_in == "any")):
        return ("holds" if by.holds else "fails"), ""
    if unknown or math.isnan(by.p):
        return "undecided", unknown or "no data"
    if by.least > alpha or (by.least * tests > alpha and by.p <= by.least):
        words = f"n too small: {units(by.case.n, by.case.unit)}"
        if claim.entry.test not in ("sign_flip", "equivalence"):
            return "undecided", f"{words} give no p below {by.least:.2g}"
        needed = seeds_needed(alpha / (by.cases * tests))
        return "undecided", f"{words}, with Holm over {tests} tests it takes {needed}"
    return "undecided", f"p is {by.p:.2g}, with Holm over {tests} tests {p_holm:.2g}"
