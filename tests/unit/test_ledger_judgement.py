"""Verdicts of the ledger: by hand, against statsmodels, and how often chance alone gives one."""

import functools
import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_recipes import claim, entry, two_sided
from scipy import stats
from statsmodels.stats.multitest import multipletests

from normscope.ledger import case as cases
from normscope.ledger.case import Case, too_few
from normscope.ledger.claim import Claim
from normscope.ledger.judgement import Judgement, judge

ALPHA = 0.05
FACT, COUNTER = Case.known(True), Case.known(False)
OPEN = Case.unknown("undecided: runs diverged")


def of(*claims: Claim, alpha: float = ALPHA) -> list[Judgement]:
    return judge(claims, alpha)


def one(cases: dict[str, Case] | Case, **changes: Any) -> Judgement:
    (found,) = of(claim(cases, **changes))
    return found


def test_a_single_case_holds_fails_or_is_undecided_at_twice_its_p():
    for p_holds, verdict, p in (
        (0.001, "holds", 0.002),
        (0.02, "holds", 0.04),
        (0.026, "undecided", 0.052),
        (0.5, "undecided", 1.0),
        (0.974, "undecided", 0.052),
        (0.98, "fails", 0.04),
    ):
        found = one(two_sided(p_holds))
        assert found.verdict == verdict
        assert found.by.p == pytest.approx(p)
        assert found.p_holm == pytest.approx(p)
        assert (found.why == "") == (verdict != "undecided")
    assert one(two_sided(0.026)).why == "p is 0.052, with Holm over 1 tests 0.052"


def test_a_p_at_the_level_decides_nothing_and_one_below_it_does():
    assert one(two_sided(ALPHA / 2)).verdict == "undecided"
    assert one(two_sided(math.nextafter(ALPHA / 2, 0))).verdict == "holds"
    assert one(two_sided(1.0, ALPHA / 2)).verdict == "undecided"
    assert one(two_sided(1.0, math.nextafter(ALPHA / 2, 0))).verdict == "fails"
    # two alike: Holm's p of both is twice theirs
    half = two_sided(ALPHA / 4)
    assert [j.verdict for j in of(claim(half), claim(half))] == ["undecided"] * 2
    less = two_sided(math.nextafter(ALPHA / 4, 0))
    assert [j.verdict for j in of(claim(less), claim(less))] == ["holds"] * 2


def test_a_statement_holds_if_it_does_in_all_cases():
    """Its p is the largest, not times their number."""
    cases = {"a": two_sided(0.001), "b": two_sided(0.004), "c": two_sided(0.002)}
    found = one(cases)
    assert (found.verdict, found.by.name, found.by.holds) == ("holds", "b", True)
    assert (found.by.p, found.by.cases) == (pytest.approx(0.008), 1)
    assert found.by.case is cases["b"]
    found = one(cases | {"d": two_sided(0.3)})
    assert (found.verdict, found.by.name) == ("undecided", "d")
    assert found.by.p == pytest.approx(0.6)


def test_a_statement_fails_if_one_case_contradicts_it():
    """Its p is the smallest, times the number of cases."""
    cases = {"a": two_sided(0.001), "b": two_sided(0.9999), "c": two_sided(0.99)}
    found = one(cases)
    assert (found.verdict, found.by.name, found.by.holds) == ("fails", "b", False)
    assert (found.by.p, found.by.cases) == (pytest.approx(2 * 3 * 0.0001), 3)
    # alone it would: 2 x 0.01
    ten = {str(i): two_sided(0.5) for i in range(9)} | {"x": two_sided(0.99)}
    found = one(ten)
    assert (found.verdict, found.by.name) == ("undecided", "x")
    assert found.by.p == pytest.approx(0.2)
    assert one({"x": two_sided(0.99)}).verdict == "fails"


def test_no_p_is_above_1():
    found = one({"a": two_sided(0.5), "b": two_sided(0.5), "c": two_sided(0.5)})
    assert (found.by.p, found.p_holm, found.verdict) == (1.0, 1.0, "undecided")
    assert one(two_sided(1.0, 1.0)).by.p == 1.0


def test_facts_decide_without_chance():
    for of_one, verdict, name in (
        ({"": FACT}, "holds", ""),
        ({"": COUNTER}, "fails", ""),
        ({"a": FACT, "b": COUNTER}, "fails", "b"),
        ({"a": FACT, "b": FACT}, "holds", "a"),
        ({"a": two_sided(1e-9), "b": COUNTER}, "fails", "b"),
        ({"a": OPEN, "b": COUNTER}, "fails", "b"),
    ):
        found = one(of_one)
        assert (found.verdict, found.by.name) == (verdict, name)
        assert math.isnan(found.by.p)
        assert math.isnan(found.p_holm)
    both = one({"a": FACT, "b": two_sided(0.001)})
    assert (both.verdict, both.by.name) == ("holds", "b")
    assert one({"a": FACT, "b": two_sided(0.3)}).verdict == "undecided"


def test_an_open_case_keeps_a_statement_from_holding_and_not_from_failing():
    sure = two_sided(1e-9)
    found = one({"a": sure, "b": OPEN})
    assert (found.verdict, found.why) == ("undecided", "runs diverged (b)")
    found = one({"a": FACT, "b": OPEN})
    assert (found.verdict, found.why) == ("undecided", "runs diverged (b)")
    found = one({"a": two_sided(1 - 1e-9), "b": OPEN})
    assert (found.verdict, found.why, found.by.name) == ("fails", "", "a")
    found = one({"a": OPEN, "b": Case.unknown("no data")})
    assert (found.verdict, found.why) == ("undecided", "runs diverged (a)")
    assert math.isnan(found.by.p)


def test_cases_without_an_answer_count_among_those_that_may_contradict():
    """What is left of eight, seven open: 0.01, twice and times eight."""
    of_eight = {"a": two_sided(0.99, 0.01)} | {str(i): OPEN for i in range(7)}
    found = one(of_eight)
    assert (found.by.name, found.by.holds, found.by.cases) == ("a", False, 8)
    assert found.by.p == pytest.approx(0.16)
    alone = one({"a": two_sided(1e-9), "b": OPEN})
    assert alone.by.p == 1  # it cannot hold, whatever the one says


def test_a_statement_about_any_case_holds_by_one_and_fails_by_all():
    two = {"a": two_sided(1e-6), "b": two_sided(1 - 1e-6, 1e-6)}
    assert one(two).verdict == "fails"
    found = one(two, holds_in="any")
    assert (found.verdict, found.by.name) == ("holds", "a")
    assert found.by.p == pytest.approx(4e-6)
    against = {"a": two_sided(1 - 1e-6, 1e-6), "b": two_sided(1 - 1e-4, 1e-4)}
    found = one(against, holds_in="any")
    assert (found.verdict, found.by.name) == ("fails", "b")
    assert found.by.p == pytest.approx(2e-4)
    half = {"a": two_sided(1 - 1e-6, 1e-6), "b": OPEN}
    assert one(half, holds_in="any").verdict == "undecided"
    assert one({"a": two_sided(1e-6), "b": OPEN}, holds_in="any").verdict == "holds"


@pytest.mark.parametrize("cases", [{}, {"": Case.unknown("no data")}, {"": Case()}])
def test_of_nothing_nothing_is_said(cases):
    found = one(cases)
    assert (found.verdict, found.why) == ("undecided", "no data")
    assert math.isnan(found.p_holm)
    assert math.isnan(found.by.least)
    assert of() == []


def test_holm_is_over_the_statements_that_are_tested():
    """0.01, 0.02 and 0.03 of three: 3 x 0.01; 2 x 0.02; and no less than that."""
    found = of(
        claim(two_sided(0.015)),
        claim(FACT),
        claim(two_sided(0.01)),
        claim({"a": OPEN}),
        claim(two_sided(1.0, 0.005)),
        claim({}),
    )
    p = [j.p_holm for j in found]
    assert [p[0], p[2], p[4]] == pytest.approx([0.04, 0.04, 0.03])
    assert [math.isnan(v) for v in p] == [False, True, False, True, False, True]
    verdicts = "holds holds holds undecided fails undecided".split()
    assert [j.verdict for j in found] == verdicts
    four = of(*(claim(two_sided(p)) for p in (0.015, 0.01, 0.005, 0.5)))
    assert [j.verdict for j in four] == ["undecided", "undecided", "holds", "undecided"]
    assert four[0].why == "p is 0.03, with Holm over 4 tests 0.06"


@given(st.lists(st.floats(1e-6, 0.5), min_size=1, max_size=12))
@settings(max_examples=60)
def test_holms_p_are_those_of_statsmodels(p_holds):
    found = of(*(claim(two_sided(p, 1.0)) for p in p_holds))
    corrected = multipletests([2 * p for p in p_holds], ALPHA, method="holm")
    rejected, adjusted = (np.asarray(v).tolist() for v in corrected[:2])
    assert [j.p_holm for j in found] == pytest.approx(adjusted)
    for j, p, holds in zip(found, adjusted, rejected, strict=True):
        if abs(p - ALPHA) > 1e-9:
            assert j.verdict == ("holds" if holds else "undecided")


def least(n: int, *, holds: bool = True) -> Case:
    """What n units can show at most."""
    p = 2.0**-n
    return two_sided(p if holds else 1.0, 1.0 if holds else p, n, smallest=p)


def needed(cases: int, tests: int) -> int:
    """Units whose least two-sided p is below the level after both corrections."""
    return next(n for n in itertools.count(1) if 2.0 ** (1 - n) * cases * tests < ALPHA)


@pytest.mark.parametrize("tests", [1, 2, 19, 32, 38])
@pytest.mark.parametrize("cases", [1, 2, 3, 7])
@pytest.mark.parametrize("holds", [True, False])
def test_too_few_units_decide_nothing_and_it_is_said_how_many_it_takes(tests, cases, holds):
    times = 1 if holds else cases
    enough = needed(times, tests)
    for n, decides in ((enough - 1, False), (enough, True)):
        of_one = {str(i): least(n, holds=holds) for i in range(cases)}
        for found in of(*(claim(of_one) for _ in range(tests))):
            assert found.by.p == min(1, 2.0 ** (1 - n) * times)
            if decides:
                assert found.verdict == ("holds" if holds else "fails")
                continue
            assert found.verdict == "undecided"
            word = re.fullmatch(
                rf"n too small: {n} seeds?, with Holm over {tests} tests it takes (\d+)",
                found.why,
            )
            assert word is not None, found.why
            assert int(word[1]) == enough


@pytest.mark.parametrize(("n", "p"), [(5, 1 / 32), (5, 0.4), (3, 1.0), (1, 0.5)])
def test_below_the_level_at_best_any_p_is_too_few_units(n, p):
    """2 x 1/32 is above 0.05 for whatever is found."""
    found = one(two_sided(p, 1.0, n, smallest=2.0**-n))
    assert found.verdict == "undecided"
    assert re.match(rf"n too small: {n} seeds?, ", found.why)
    assert found.why.endswith("it takes 6")


def test_units_that_could_have_decided_are_not_called_few():
    """9 seeds reach 1/256, 13 times which is 0.0508; here p is 2/256 anyway."""
    others = [claim(two_sided(0.5)) for _ in range(12)]
    at_best = of(claim(least(9)), *others)[0]
    assert at_best.why.endswith("with Holm over 13 tests it takes 10")
    more = two_sided(2 / 512, n=9, smallest=1 / 512)
    found = of(claim(more), *others)[0]
    assert found.why == "p is 0.0078, with Holm over 13 tests 0.1"
    # among much smaller p, Holm's factor is small: 0.0039 x 1
    sure = [claim(two_sided(1e-9)) for _ in range(12)]
    assert of(claim(least(9)), *sure)[0].verdict == "holds"


def test_how_many_it_takes_is_said_of_sign_flips_alone():
    families = two_sided(0.1, 1.0, 5, smallest=0.1, unit="family")
    found = one(families, test="permutation", bound=None, criterion="higher")
    assert found.why == "n too small: 5 families give no p below 0.2"
    within = one(least(4), test="equivalence", direction="within", margin=1.0)
    assert within.why.endswith("it takes 6")


P = st.integers(1, 16).map(lambda n: 2.0**-n)


@given(st.lists(st.tuples(P, st.integers(1, 12)), min_size=1, max_size=8), st.booleans())
@settings(max_examples=60)
def test_a_statement_and_its_contrary_have_contrary_verdicts(found, open_too):
    """One case each; and whenever the least p is above the level there is no verdict."""
    cases = [two_sided(max(p, 2.0**-n), n=n, smallest=2.0**-n) for p, n in found]
    turned = [two_sided(c.p_fails, c.p_holds, c.n, smallest=c.smallest) for c in cases]
    extra = [claim(OPEN)] * open_too
    there = of(*map(claim, cases), *extra)
    back = of(*map(claim, turned), *extra)
    other = {"holds": "fails", "fails": "holds", "undecided": "undecided"}
    for one_, contrary in zip(there, back, strict=True):
        if one_.by.case.p_holds != one_.by.case.p_fails:
            assert contrary.verdict == other[one_.verdict]
        if one_.by.least > ALPHA:
            assert one_.verdict == "undecided"


@pytest.mark.parametrize(
    ("alpha", "n"), [(0.05, 6), (0.01, 8), (0.001, 11), (0.1, 5), (0.05 / 38, 11)]
)
def test_a_case_alone_needs_units_enough_for_the_level(alpha, n):
    """2 x 2^-n is below it."""
    assert 2.0 ** (1 - n) < alpha < 2.0 ** (2 - n)
    assert least(n).reading(alpha) == "holds"
    assert least(n, holds=False).reading(alpha) == "fails"
    few = least(n - 1).reading(alpha)
    assert few == f"undecided: {n - 1} seeds, {n} needed" == too_few(n - 1, "model", alpha)
    assert too_few(n, "model", alpha) == ""


CLAIMS, SEEDS, REPETITIONS = 20, 12, 300
HALF = np.array(list(itertools.product([1.0], *[[1.0, -1.0]] * (SEEDS - 1))))  # and its negative


def flips(values: np.ndarray) -> np.ndarray:
    """One-sided p of means above and below 0, of rows: the share of flips that are no less so."""
    found = []
    for rows in np.array_split(values, math.ceil(len(values) / 1000)):
        sums, own = HALF @ rows.T, rows.sum(axis=1)
        less, more = (sums <= own + 1e-9).sum(axis=0), (sums >= own - 1e-9).sum(axis=0)
        less, more = less + (-sums <= own + 1e-9).sum(axis=0), more + (-sums >= own - 1e-9).sum(0)
        found.append(np.stack([more, less], axis=1) / (2 * len(HALF)))
    return np.concatenate(found)


def verdicts(shift: float, repetitions: int, cases: int = 1) -> list[list[str]]:
    """Of repetitions of a ledger whose claims are on as many seeds, in so many places each."""
    rng = np.random.default_rng(1)
    p = iter(flips(shift + rng.normal(size=(repetitions * CLAIMS * cases, SEEDS))))
    found = []
    for _ in range(repetitions):
        there = [
            {
                place: two_sided(*map(float, next(p)), n=SEEDS, smallest=2.0**-SEEDS)
                for place in "abc"[:cases]
            }
            for _ in range(CLAIMS)
        ]
        found.append([j.verdict for j in of(*map(claim, there))])
    return found


@pytest.mark.parametrize("cases", [1, 2])
def test_chance_alone_gives_any_verdict_in_5_percent_of_ledgers_at_most(cases):
    found = verdicts(0.0, REPETITIONS, cases)
    wrong = sum(any(v != "undecided" for v in ledger) for ledger in found)
    # so many or more are as rare as 1 in 1000 if the chance is 5%
    assert wrong <= stats.binom.isf(1e-3, REPETITIONS, ALPHA)
    if cases == 1:
        assert wrong > 0  # the test has power: exact p are not far below what they may be


def test_clear_differences_have_the_verdict_that_they_should():
    for shift, verdict in ((3.0, "holds"), (-3.0, "fails")):
        found = verdicts(shift, 20)
        assert {v for ledger in found for v in ledger} == {verdict}


def test_the_p_of_units_is_that_of_all_flips():
    decide = functools.partial(cases.decide, level=0.95)
    rng = np.random.default_rng(3)
    for values in rng.normal(0.4, 1, size=(5, SEEDS)):
        case = decide(entry(), list(values))
        expected = flips(values[None])[0].tolist()
        assert [case.p_holds, case.p_fails] == pytest.approx(expected)
        less = decide(entry(direction="less"), list(values))
        assert [less.p_fails, less.p_holds] == pytest.approx(expected)
        assert case.smallest == 2.0**-SEEDS
        moved = decide(entry(bound=5.0), list(values + 5))
        assert moved.p_holds == pytest.approx(expected[0])
        factors = decide(entry(scale="log", bound=2.0), list(2 * np.exp(values)))
        assert factors.p_holds == pytest.approx(expected[0])
        assert factors.effect == pytest.approx(2 * math.exp(values.mean()))
