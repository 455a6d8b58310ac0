"""Verdicts of the ledger: by hand, and against statsmodels."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_recipes import claim, read, reading, two_sided
from normscope.verdicts.case import Case, decide
from normscope.verdicts.claim import Claim
from normscope.verdicts.judgement import Judgement, judge
from scipy import stats
from statsmodels.stats.multitest import multipletests

ALPHA = 0.05
FACT, COUNTER = Case.known(True), Case.known(False)
OPEN = Case.unknown("undecided: runs diverged")
ALIKE = {"test": "equivalence", "direction": "within"}


def judged(*claims: Claim, alpha: float = ALPHA) -> list[Judgement]:
    return judge(claims, alpha)


def one(cases: dict[str, Case] | Case, **changes: Any) -> Judgement:
    (judgement,) = judged(claim(cases, **changes))
    return judgement


def test_a_single_case_holds_fails_or_is_undecided_at_twice_its_p():
    for p_holds, verdict, p in (
        (0.001, "holds", 0.002),
        (0.02, "holds", 0.04),
        (0.026, "undecided", 0.052),
        (0.5, "undecided", 1.0),
        (0.974, "undecided", 0.052),
        (0.98, "fails", 0.04),
    ):
        judgement = one(two_sided(p_holds))
        assert judgement.verdict == verdict
        assert judgement.by.p == pytest.approx(p)
        assert judgement.p_holm == pytest.approx(p)
        assert (judgement.why == "") == (verdict != "undecided")
    assert one(two_sided(0.026)).why == "p = 0.052 for holding"


@pytest.mark.parametrize(
    ("p_holds", "p_fails", "changes", "why"),
    [
        (0.03, 1.0, {"direction": "greater"}, "p = 0.06 for holding"),
        (0.03, 1.0, {"direction": "greater", "margin": 0.1}, "p = 0.06 for holding"),
        (
            1.0,
            0.03,
            {"direction": "greater", "margin": 0.1},
            "p = 0.06 for failing, tested against the margin",
        ),
        (0.03, 1.0, {**ALIKE, "margin": 0.1}, "p = 0.06 for holding, tested against the margin"),
    ],
)
def test_an_open_statement_says_what_its_p_is_against(p_holds, p_fails, changes, why):
    """What speaks for a difference is compared with 0, what speaks against one with the margin."""
    changes |= {"margin_because": "a tenth"} if "margin" in changes else {}
    assert one(two_sided(p_holds, p_fails), **changes).why == why


def test_a_p_at_the_level_decides_nothing_and_one_below_it_does():
    assert one(two_sided(ALPHA / 2)).verdict == "undecided"
    assert one(two_sided(math.nextafter(ALPHA / 2, 0))).verdict == "holds"
    assert one(two_sided(1.0, ALPHA / 2)).verdict == "undecided"
    assert one(two_sided(1.0, math.nextafter(ALPHA / 2, 0))).verdict == "fails"
    # two equal p-values: Holm doubles both
    half = two_sided(ALPHA / 4)
    assert [j.verdict for j in judged(claim(half), claim(half))] == ["undecided"] * 2
    less = two_sided(math.nextafter(ALPHA / 4, 0))
    assert [j.verdict for j in judged(claim(less), claim(less))] == ["holds"] * 2


def test_a_statement_holds_if_it_does_in_all_cases():
    """Its p is the largest, not times their number."""
    cases = {"a": two_sided(0.001), "b": two_sided(0.004), "c": two_sided(0.002)}
    judgement = one(cases)
    assert (judgement.verdict, judgement.by.name, judgement.by.holds) == ("holds", "b", True)
    assert (judgement.by.p, judgement.by.tests) == (pytest.approx(0.008), 1)
    assert judgement.by.case is cases["b"]
    judgement = one(cases | {"d": two_sided(0.3)})
    assert (judgement.verdict, judgement.by.name) == ("undecided", "d")
    assert judgement.by.p == pytest.approx(0.6)


def test_a_statement_fails_if_one_case_contradicts_it():
    """Its p is the smallest, times the number of cases."""
    cases = {"a": two_sided(0.001), "b": two_sided(0.9999), "c": two_sided(0.99)}
    judgement = one(cases)
    assert (judgement.verdict, judgement.by.name, judgement.by.holds) == ("fails", "b", False)
    assert (judgement.by.p, judgement.by.tests) == (pytest.approx(2 * 3 * 0.0001), 3)
    # alone it would: 2 x 0.01
    ten = {str(i): two_sided(0.5) for i in range(9)} | {"x": two_sided(0.99)}
    judgement = one(ten)
    assert (judgement.verdict, judgement.by.name) == ("undecided", "x")
    assert judgement.by.p == pytest.approx(0.2)
    assert one({"x": two_sided(0.99)}).verdict == "fails"


def test_no_p_is_above_1():
    judgement = one({"a": two_sided(0.5), "b": two_sided(0.5), "c": two_sided(0.5)})
    assert (judgement.by.p, judgement.p_holm, judgement.verdict) == (1.0, 1.0, "undecided")
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
        judgement = one(of_one)
        assert (judgement.verdict, judgement.by.name) == (verdict, name)
        assert math.isnan(judgement.by.p)
        assert math.isnan(judgement.p_holm)
    both = one({"a": FACT, "b": two_sided(0.001)})
    assert (both.verdict, both.by.name) == ("holds", "b")
    assert one({"a": FACT, "b": two_sided(0.3)}).verdict == "undecided"


def test_an_open_case_keeps_a_statement_from_holding_and_not_from_failing():
    sure = two_sided(1e-9)
    judgement = one({"a": sure, "b": OPEN})
    assert (judgement.verdict, judgement.why) == ("undecided", "runs diverged (b)")
    judgement = one({"a": FACT, "b": OPEN})
    assert (judgement.verdict, judgement.why) == ("undecided", "runs diverged (b)")
    judgement = one({"a": two_sided(1 - 1e-9), "b": OPEN})
    assert (judgement.verdict, judgement.why, judgement.by.name) == ("fails", "", "a")
    judgement = one({"a": OPEN, "b": Case.unknown("no data")})
    assert (judgement.verdict, judgement.why) == ("undecided", "runs diverged (a)")
    assert math.isnan(judgement.by.p)


def test_an_open_statement_names_the_reading_and_the_case_that_keep_it_open():
    """Another case may be open too: the most probable answer is the one that lacks something."""
    of_eight = {"a": two_sided(0.99, 0.01)} | {str(i): OPEN for i in range(7)}
    assert (
        one(of_eight).why == "p = 0.16 for failing (a)"
    )  # one case contradicts, whatever the others say
    assert one({"a": two_sided(0.3), "b": two_sided(1e-9)}).why == "p = 0.6 for holding (a)"
    x_y = {"x": SURE, "y": two_sided(0.3)}
    assert judged(read(SURE, x_y))[0].why == "p = 0.6 for holding (b, y)"
    # a fails and b is open: it could still fail or depend, if b were tested
    assert judged(read(SURELY_NOT, OPEN))[0].why == "runs diverged (b)"
    # a fails for certain and b neither fails nor exceeds its margin
    assert judged(read(COUNTER, two_sided(0.3, 1.0, p_beyond=1.0)))[0].why == "p is above 0.05 (b)"


def test_cases_without_an_answer_count_among_those_that_may_contradict():
    """What is left of eight, seven open: 0.01, twice and times eight."""
    of_eight = {"a": two_sided(0.99, 0.01)} | {str(i): OPEN for i in range(7)}
    judgement = one(of_eight)
    assert (judgement.by.name, judgement.by.holds, judgement.by.tests) == ("a", False, 8)
    assert judgement.by.p == pytest.approx(0.16)
    alone = one({"a": two_sided(1e-9), "b": OPEN})
    assert alone.verdict == "undecided"  # it cannot hold, whatever the one says


def test_a_statement_about_any_case_holds_by_one_and_fails_by_all():
    two = {"a": two_sided(1e-6), "b": two_sided(1 - 1e-6, 1e-6)}
    assert one(two).verdict == "fails"
    judgement = one(two, holds_in="any")
    assert (judgement.verdict, judgement.by.name) == ("holds", "a")
    assert judgement.by.p == pytest.approx(4e-6)
    against = {"a": two_sided(1 - 1e-6, 1e-6), "b": two_sided(1 - 1e-4, 1e-4)}
    judgement = one(against, holds_in="any")
    assert (judgement.verdict, judgement.by.name) == ("fails", "b")
    assert judgement.by.p == pytest.approx(2e-4)
    half = {"a": two_sided(1 - 1e-6, 1e-6), "b": OPEN}
    assert one(half, holds_in="any").verdict == "undecided"
    assert one({"a": two_sided(1e-6), "b": OPEN}, holds_in="any").verdict == "holds"


def test_what_exists_can_be_shown_and_not_refuted():
    exists = {"holds_in": "any", "refutable": False}
    assert one({"a": two_sided(1e-6), "b": two_sided(0.9)}, **exists).verdict == "holds"
    judgement = one({"a": two_sided(1 - 1e-9, 1e-9), "b": two_sided(1 - 1e-9, 1e-9)}, **exists)
    assert (judgement.verdict, judgement.by.p) == ("undecided", 1.0)
    assert "cannot show that there is none" in judgement.why
    # nor does another reading make it depend
    other = read({"a": two_sided(1e-9)}, {"b": two_sided(1 - 1e-9, 1e-9)}, **exists)
    assert judged(other)[0].verdict == "undecided"


SURE, SURELY_NOT = two_sided(1e-6), two_sided(1 - 1e-6, 1e-6)


def test_a_statement_is_decided_where_its_readings_agree():
    for readings, verdict, by in (
        ([SURE, two_sided(1e-4)], "holds", "b"),
        ([SURELY_NOT, two_sided(1 - 1e-4, 1e-4)], "fails", "b"),
        ([FACT, SURE], "holds", "b"),
        ([FACT, FACT], "holds", "a"),
        ([SURE, two_sided(0.3)], "undecided", "b"),
        ([SURE, OPEN], "undecided", "b"),
        ([SURELY_NOT, OPEN, COUNTER], "undecided", "b"),
    ):
        (judgement,) = judged(read(*readings))
        assert (judgement.verdict, judgement.by.reading) == (verdict, by)
    (judgement,) = judged(read(SURE, two_sided(1e-4)))
    assert judgement.by.p == pytest.approx(2e-4)  # the largest, not times their number
    assert judged(read(SURE, OPEN))[0].why == "runs diverged (b)"
    assert judged(read(SURE, two_sided(0.3)))[0].why == "p = 0.6 for holding (b)"


def test_a_statement_depends_on_its_reading_where_one_holds_and_another_fails():
    """Each p is the smallest of its side, times the number of readings."""
    (judgement,) = judged(read(two_sided(1e-6), two_sided(1 - 1e-4, 1e-4), two_sided(0.3)))
    assert (judgement.verdict, judgement.by.reading) == ("depends", "b")
    assert judgement.by.p == pytest.approx(2 * 3 * 1e-4)
    assert judged(read(FACT, COUNTER))[0].verdict == "depends"
    assert judged(read(FACT, SURELY_NOT))[0].by.p == pytest.approx(2e-6)
    assert judged(read(SURE, SURELY_NOT, OPEN))[0].verdict == "depends"
    # 2 x 2 x 0.013 is above the level, and 2 x 2 x 0.012 below
    assert judged(read(SURE, two_sided(0.987, 0.013)))[0].verdict == "undecided"
    assert judged(read(SURE, two_sided(0.988, 0.012)))[0].verdict == "depends"


def test_to_depend_a_reading_must_hold_beyond_its_margin():
    """One truth between bound and margin may hold in one reading and fail in another."""
    between = two_sided(1e-6, p_beyond=0.4)
    assert judged(read(between, SURELY_NOT))[0].verdict == "undecided"
    assert judged(read(between, SURE))[0].verdict == "holds"


def test_a_reading_is_one_whatever_its_cases():
    """Two of three cases hold in one reading, which fails; the other reading holds."""
    cases = {"x": SURE, "y": SURE, "z": two_sided(1 - 1e-4, 1e-4)}
    (judgement,) = judged(read(cases, SURE))
    assert (judgement.verdict, judgement.by.name) == ("depends", "z")
    assert judgement.by.p == pytest.approx(2 * 3 * 2 * 1e-4)


@pytest.mark.parametrize("cases", [{}, {"": Case.unknown("no data")}, {"": Case()}])
def test_of_nothing_nothing_is_said(cases):
    judgement = one(cases)
    assert (judgement.verdict, judgement.why) == ("undecided", "no data")
    assert math.isnan(judgement.p_holm)
    assert math.isnan(judgement.by.least)
    assert judged() == []


def test_holm_is_over_all_statements_of_a_document_but_facts():
    """0.01, 0.02 and 0.03, and two that could not be tested: 5 x 0.01; 4 x 0.02; 3 x 0.03."""
    document = judged(
        claim(two_sided(0.015)),
        claim(FACT),
        claim(two_sided(0.01)),
        claim({"a": OPEN}),
        claim(two_sided(1.0, 0.004)),
        claim({}),
    )
    p = [j.p_holm for j in document]
    assert [p[0], p[2], p[4]] == pytest.approx([0.09, 0.08, 0.04])
    assert [math.isnan(v) for v in p] == [False, True, False, True, False, True]
    verdicts = "undecided holds undecided undecided fails undecided".split()
    assert [j.verdict for j in document] == verdicts
    assert {j.tests for j in document} == {5}
    four = judged(*(claim(two_sided(p)) for p in (0.015, 0.01, 0.005, 0.5)))
    assert [j.verdict for j in four] == ["undecided", "undecided", "holds", "undecided"]
    assert four[0].why == "p = 0.03 for holding, 0.06 after Holm's correction"


@given(st.lists(st.floats(1e-6, 0.5), min_size=1, max_size=12))
@settings(max_examples=60)
def test_holms_p_are_those_of_statsmodels(p_holds):
    document = judged(*(claim(two_sided(p, 1.0)) for p in p_holds))
    corrected = multipletests([2 * p for p in p_holds], ALPHA, method="holm")
    rejected, adjusted = (np.asarray(v).tolist() for v in corrected[:2])
    assert [j.p_holm for j in document] == pytest.approx(adjusted)
    for j, p, holds in zip(document, adjusted, rejected, strict=True):
        if abs(p - ALPHA) > 1e-9:
            assert j.verdict == ("holds" if holds else "undecided")


def test_a_document_is_a_family_of_its_own():
    """Ten p of 0.02 in one document take Holm's factor; the only one of another has none."""
    crowd = [claim(two_sided(0.01)) for _ in range(10)]
    documents = judged(*crowd, claim(two_sided(0.01), document="other"))
    assert [j.verdict for j in documents] == ["undecided"] * 10 + ["holds"]
    assert [j.tests for j in documents] == [10] * 10 + [1]


def test_what_a_document_stands_on_comes_first():
    """Primary statements take no factor for the others; these wait for all of them."""
    others = [claim(two_sided(1e-6)) for _ in range(9)]
    sure = judged(claim(two_sided(0.02), primary=True), *others)
    assert [j.verdict for j in sure] == ["holds"] * 10
    assert [j.p_holm for j in sure[1:]] == pytest.approx([0.04] * 9)
    unsure = judged(claim(two_sided(0.03), primary=True), *others)
    assert [j.verdict for j in unsure] == ["undecided"] * 10
    main = "while the main claims of its document are undecided"  # and not for their number
    assert unsure[1].why == f"p = 2e-06 for holding, {main}"
    untested = judged(claim(OPEN, primary=True), *others)
    assert {j.verdict for j in untested} == {"undecided"}
    assert math.isnan(untested[0].p_holm)
    for fact in (FACT, COUNTER):  # deterministic: neither tested nor a hurdle
        assert {j.verdict for j in judged(claim(fact, primary=True), *others)[1:]} == {"holds"}


def test_too_few_units_decide_nothing_and_it_is_said():
    few = Case(effect=1.0, n=5)
    assert (one(few).verdict, one(few).why) == ("undecided", "5 seeds, 6 needed")
    families = two_sided(0.1, 1.0, 5, smallest=0.1, unit="family")
    judgement = one(families, test="permutation", bound=None, criterion="higher")
    assert judgement.why == "5 families give no p below 0.2"


P = st.integers(1, 16).map(lambda n: 2.0**-n)


@given(st.lists(st.tuples(P, st.integers(1, 12)), min_size=1, max_size=8), st.booleans())
@settings(max_examples=60)
def test_a_statement_and_its_contrary_have_contrary_verdicts(closed, open_too):
    """One case each; and whenever the least p is above the level there is no verdict."""
    cases = [two_sided(max(p, 2.0**-n), n=n, smallest=2.0**-n) for p, n in closed]
    turned = [two_sided(c.p_fails, c.p_holds, c.n, smallest=c.smallest) for c in cases]
    extra = [claim(OPEN)] * open_too
    statements = judged(*map(claim, cases), *extra)
    back = judged(*map(claim, turned), *extra)
    other = {"holds": "fails", "fails": "holds", "undecided": "undecided"}
    for one_, contrary in zip(statements, back, strict=True):
        if one_.by.case.p_holds != one_.by.case.p_fails:
            assert contrary.verdict == other[one_.verdict]
        if one_.by.least > ALPHA:
            assert one_.verdict == "undecided"


def test_p_of_a_document_are_those_of_scipy_and_statsmodels():
    """Seeds -> t -> Holm -> the gate, by other code."""
    rng = np.random.default_rng(3)
    samples = rng.normal(0.8, 1, (10, 8)).tolist()
    p = [stats.ttest_1samp(v, 0).pvalue for v in samples]
    first, rest = (np.asarray(multipletests(part, method="holm")[1]) for part in (p[:2], p[2:]))
    expected = [*first, *np.maximum(rest, first.max())]
    document = judged(
        *(claim(decide(reading(), v, level=0.95), primary=i < 2) for i, v in enumerate(samples))
    )
    assert [j.p_holm for j in document] == pytest.approx(expected)
