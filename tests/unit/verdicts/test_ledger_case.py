"""One test of a statement: planted values against scipy, enumeration, and numbers by hand."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from normscope.verdicts.case import GREATEST, SMALLEST, Case, decide, too_few
from normscope.verdicts.reading import Reading
from scipy import stats

from normscope.errors import Explained

NAN = math.nan
OPEN = "undecided: p is above 0.05"
WORDS: dict[str, Any] = {
    "quantity": "quantity",
    "test": "t",
    "criterion": "compared with the bound",
    "bound_because": "it is planted",
    "unit": "model",
}


def reading(direction: str = "greater", **changes: Any) -> Reading:
    """A reading about a quantity that is compared with 0, or on a logarithmic scale with 1."""
    words = WORDS | {"direction": direction, "bound": 1.0 if "scale" in changes else 0.0}
    if direction == "within":
        words |= {"margin": 1.0, "test": "equivalence"}
    words |= changes
    if words.get("margin"):
        words["margin_because"] = "it is planted"
    return Reading.model_validate(words)


def case_of(asked: Reading, values: Sequence[float], level: float = 0.95) -> Case:
    return decide(asked, values, level=level)


POSITIVE = [0.2, 0.3, 0.25, 0.1, 0.4, 0.35]
VALUES = st.lists(st.integers(-40, 60).map(lambda v: v / 8), min_size=6, max_size=9)


@given(values=VALUES, bound=st.integers(-4, 4))
def test_a_mean_is_tested_by_students_t(values, bound):
    case = case_of(reading(bound=float(bound)), values)
    if len(set(values)) > 1:
        t = stats.ttest_1samp(values, bound, alternative="greater")
        assert case.p_holds == pytest.approx(t.pvalue)
        assert case.p_fails == pytest.approx(1 - t.pvalue)
        low, high = t_interval(values)
        assert (case.low, case.high) == pytest.approx((low, high))
        assert case.smallest == 0
    else:  # nothing varies: no t, and flips decide
        signs = itertools.product((1, -1), repeat=len(values))
        sums = [sum(s * (v - bound) for s, v in zip(flip, values, strict=True)) for flip in signs]
        flips = sum(s >= sum(v - bound for v in values) for s in sums) / len(sums)
        assert (case.p_holds, case.smallest) == (pytest.approx(flips), 2.0 ** -len(values))
    contrary = case_of(reading("less", bound=float(bound)), values)
    assert contrary.p_fails == pytest.approx(case.p_holds)


def t_interval(values: list[float]) -> tuple[float, float]:
    e = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    return float(e.low), float(e.high)


@pytest.mark.parametrize(
    ("values", "greater", "less"),
    [(POSITIVE, "holds", "fails"), ([0.0] * 6, OPEN, OPEN), ([0.1, -0.1] * 3, OPEN, OPEN)],
)
def test_a_case_holds_fails_or_is_open(values, greater, less):
    assert case_of(reading("greater"), values).answer() == greater
    assert case_of(reading("less"), values).answer() == less


FEW = {n: f"undecided: {n} seed{'s' if n > 1 else ''}, 6 needed" for n in range(1, 6)}


@pytest.mark.parametrize("asked", [reading(), reading(scale="log"), reading("within", margin=9.0)])
def test_below_six_seeds_there_is_an_effect_and_no_test(asked):
    for n in range(2, 6):
        case = case_of(asked, [2.0, 2.1, 2.2, 2.3, 2.4][:n])
        assert case.answer() == FEW[n] == too_few(n)
        assert math.isfinite(case.effect + case.low + case.high)
        assert math.isnan(case.p_holds)
    assert case_of(asked, [2.0, 2.1, 2.2, 2.3, 2.4, 2.2]).answer() == "holds"
    assert case_of(asked, []).answer() == "no data"
    assert case_of(reading(unit="family"), [1.0] * 4).answer() == "undecided: 4 families, 6 needed"


def test_outcomes_of_0_and_1_are_compared_by_mcnemars_exact_test():
    """10 seeds, of which 7 fail on the one side alone, 1 on the other: a binomial of 8."""
    outcomes = [1.0] * 7 + [-1.0] + [0.0] * 2
    case = case_of(reading(test="sign_flip"), outcomes)
    assert case.p_holds == pytest.approx(stats.binomtest(7, 8, alternative="greater").pvalue)
    assert case.p_fails == pytest.approx(stats.binomtest(7, 8, alternative="less").pvalue)


@pytest.mark.parametrize("end", [1.0, -1.0])
@pytest.mark.parametrize(("mean", "reads"), [(0.5, "holds"), (0.95, OPEN), (1.5, "fails")])
def test_equivalence_is_two_one_sided_t_tests(mean, reads, end):
    values = [end * mean + v for v in (-0.2, -0.1, -0.05, 0.05, 0.1, 0.2)]
    case = case_of(reading("within"), values)
    inside = max(
        stats.ttest_1samp(values, -1, alternative="greater").pvalue,
        stats.ttest_1samp(values, 1, alternative="less").pvalue,
    )
    assert case.p_holds == pytest.approx(inside)
    assert case.answer() == reads


def test_equivalence_of_medians_is_two_sign_tests():
    """Ten of eleven models are inside, or outside; one failed, which moves the mean outside."""
    values = [-0.9, -0.5, *[0.1] * 7, 0.9, 50.0]
    case = case_of(reading("within", test="median"), values)
    assert case.p_holds == pytest.approx(stats.binomtest(10, 11, alternative="greater").pvalue)
    assert (case.effect, case.answer()) == (0.1, "holds")
    outside = case_of(reading("within", test="median"), [v + 1.7 for v in values])
    assert outside.p_fails == pytest.approx(stats.binomtest(10, 11, alternative="greater").pvalue)
    assert outside.answer() == "fails"


def test_a_margin_of_a_direction_is_the_least_difference_that_counts():
    """What is clearly below it refutes; what is beyond it and clearly above the bound holds."""
    spread = [-0.02, -0.01, 0.0, 0.0, 0.01, 0.02]
    for sign, direction in ((1, "greater"), (-1, "less")):
        asked = reading(direction, margin=0.5)
        for mean, reads in ((0.2, "fails"), (-0.2, "fails"), (0.8, "holds"), (-0.8, "fails")):
            assert case_of(asked, [sign * (mean + v) for v in spread]).answer() == reads
        wide = [0.3 + 30 * v for v in spread]
        case = case_of(asked, [sign * v for v in wide])
        assert case.answer() == OPEN
        p = stats.ttest_1samp(wide, 0.5, alternative="less").pvalue
        assert (case.p_fails, case.p_holds) == (pytest.approx(p), 1)
        exactly = [0.25, 0.75] * 3  # at the margin is not by more than the margin
        assert case_of(asked, [sign * v for v in exactly]).p_holds == 1
        beyond = [0.6 + v for v in spread]
        p = stats.ttest_1samp(beyond, 0, alternative="greater").pvalue
        assert case_of(asked, [sign * v for v in beyond]).p_holds == pytest.approx(p)


def test_a_margin_on_a_logarithmic_scale_is_a_factor_both_ways():
    for ratio in (1.2, 1 / 1.2):
        values = [3 * ratio * (1 + v / 100) for v in (-2, -1, 0, 0, 1, 2)]
        within = reading("within", scale="log", bound=3.0, margin=1.5)
        assert case_of(within, values).answer() == "holds"
        assert case_of(within.model_copy(update={"margin": 1.1}), values).answer() == "fails"


def test_on_a_logarithmic_scale_the_mean_is_geometric():
    values = [1 / 9, 3.0] * 5
    case = case_of(reading("less", scale="log"), values)
    assert case.effect == pytest.approx(3**-0.5)
    logs = [math.log(v) for v in values]
    assert case.p_holds == pytest.approx(stats.ttest_1samp(logs, 0, alternative="less").pvalue)
    assert (case.low, case.high) == pytest.approx(tuple(map(math.exp, t_interval(logs))))


@pytest.mark.parametrize("odd", [0.0, math.inf])
def test_zeros_and_infinities_have_a_logarithm(odd):
    """Those of the least and the greatest float."""
    case = case_of(reading("less" if odd == 0 else "greater", scale="log"), [odd] * 6)
    assert case.answer() == "holds"
    assert case.effect == pytest.approx(SMALLEST if odd == 0 else GREATEST, rel=1e-9)


@pytest.mark.parametrize("values", [[NAN], [1.0] * 6 + [NAN], [math.inf] * 6])
def test_on_a_linear_scale_only_finite_values_are_compared(values):
    with pytest.raises(ValueError, match="finite"):
        case_of(reading(), values)


def test_a_test_needs_a_bound():
    with pytest.raises(Explained, match="'quantity' has no bound"):
        case_of(reading(bound=None), POSITIVE)


def test_an_interval_has_its_level():
    wide, narrow = (case_of(reading(), POSITIVE, level) for level in (0.99, 0.6))
    assert wide.low < narrow.low < narrow.high < wide.high
    assert wide.p_holds == narrow.p_holds


@pytest.mark.parametrize("answer", [True, False])
def test_a_fact_needs_no_chance(answer):
    case = Case.known(answer, 0.25)
    assert case.answer() == case.answer(1e-9) == ("holds" if answer else "fails")
    assert (case.n, case.unit, case.effect) == (1, "formula", 0.25)


def test_what_is_unknown_says_why():
    assert Case.unknown("undecided: no twin").answer() == "undecided: no twin"
    assert Case().answer() == "no data"
