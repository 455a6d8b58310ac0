"""One test of a statement: exact sign flips of planted values, and the words that they give."""

import functools
import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from normscope.errors import Explained
from normscope.ledger import case as cases
from normscope.ledger.case import GREATEST, SMALLEST, Case, too_few
from normscope.ledger.entry import Entry

NAN = math.nan
decide = functools.partial(cases.decide, level=0.95)
SIGNS = st.sampled_from([1, -1])
OPEN = "undecided: p is above 0.05"
WORDS: dict[str, Any] = {
    "study": "jacobian",
    "document": "script",
    "where": "here",
    "statement": "The quantity is as it is.",
    "quantity": "quantity",
    "criterion": "compared with {bound}, within {margin}",
    "figure": "jacobian",
    "differs_because": "it was not measured",
}


def entry(direction: str = "greater", **changes: Any) -> Entry:
    """A statement about a quantity that is compared with 0, or on a logarithmic scale with 1."""
    found = WORDS | {"test": "sign_flip", "direction": direction, "unit": "model"} | changes
    if direction == "within":
        found = {"margin": 1.0} | found | {"test": "equivalence"}
    return Entry.model_validate({"bound": 1.0 if "scale" in changes else 0.0} | found)


def log_entry(direction: str = "greater", **changes: Any) -> Entry:
    return entry(direction, scale="log", **changes)


POSITIVE = [0.2, 0.3, 0.25, 0.1, 0.4, 0.35]
NEGATIVE = [-v for v in POSITIVE]


@pytest.mark.parametrize(
    ("values", "greater", "less"),
    [
        (POSITIVE, "holds", "fails"),
        (NEGATIVE, "fails", "holds"),
        # 1.6 less 0.2: of 64 sums those without one of 0.1 too: 2/64, two-sided 4/64
        ([0.2, 0.3, 0.25, -0.1, 0.4, 0.35], OPEN, OPEN),
        ([-0.2, 0.3, -0.25, 0.1, 0.4, 0.35], OPEN, OPEN),
        ([0.0] * 6, OPEN, OPEN),
        # 0 has no sign, and half of all flips are as far: 2/64
        ([0.0, *POSITIVE[1:]], OPEN, OPEN),
    ],
)
def test_a_sign_is_decided_by_flips(values, greater, less):
    assert decide(entry("greater"), values).reading() == greater
    assert decide(entry("less"), values).reading() == less


@given(values=st.lists(st.integers(-40, 60).filter(bool), min_size=1, max_size=8))
def test_p_is_the_share_of_flips_that_are_as_far(values):
    """By going through all of them, in whole numbers."""
    sums = [sum(s) for s in itertools.product(*((v, -v) for v in values))]
    above, below = (
        sum(t >= sum(values) for t in sums) / len(sums),
        sum(t <= sum(values) for t in sums) / len(sums),
    )
    case = decide(entry("greater"), values)
    assert (case.p_holds, case.p_fails) == pytest.approx((above, below))
    case = decide(entry("less"), values)
    assert (case.p_holds, case.p_fails) == pytest.approx((below, above))
    assert case.smallest == 2.0 ** -len(values)


@given(
    sizes=st.lists(st.floats(1e-6, 3), min_size=6, max_size=8),
    signs=st.one_of(st.just([1] * 8), st.just([-1] * 8), st.lists(SIGNS, min_size=8, max_size=8)),
)
def test_six_are_decided_only_if_all_are_on_one_side(sizes, signs):
    values = [a * b for a, b in zip(sizes, signs, strict=False)]
    reads = decide(entry(), values).reading()
    if min(values) > 0 or max(values) < 0:
        assert reads == ("holds" if min(values) > 0 else "fails")
    elif len(values) == 6:
        assert reads == OPEN


def test_seven_may_have_one_on_the_other_side_if_it_is_the_nearest():
    assert decide(entry(), [*POSITIVE, -0.05]).reading() == "holds"
    assert decide(entry(), [*NEGATIVE, 0.05]).reading() == "fails"
    assert decide(entry(), [*POSITIVE, -0.45]).reading() == OPEN


FEW = {n: f"undecided: {n} seed{'s' if n > 1 else ''}, 6 needed" for n in range(1, 6)}


@pytest.mark.parametrize(("n", "reads"), [(0, "no data"), *FEW.items(), (6, "holds"), (7, "holds")])
@pytest.mark.parametrize("of", [entry(), log_entry(), entry("within", margin=9.0)])
def test_six_seeds_are_needed(n, reads, of):
    """2^(1 - 6) is 0.031, below 5%; 2^(1 - 5) is 0.0625."""
    assert decide(of, [2.0] * n).reading() == reads
    if n:
        assert decide(of, [2.0] * n).smallest == 2.0**-n
    assert too_few(n) == (reads if n < 6 else "")


@pytest.mark.parametrize(
    ("unit", "one", "many"),
    [
        ("model", "1 seed", "4 seeds"),
        ("prompt", "1 prompt", "4 prompts"),
        ("family", "1 family", "4 families"),
        ("formula", "1 formula", "4 formulas"),
    ],
)
def test_units_that_are_too_few_are_named(unit, one, many):
    of = entry(unit=unit)
    assert decide(of, [1.0] * 4).reading() == f"undecided: {many}, 6 needed"
    assert decide(of, [1.0]).reading() == f"undecided: {one}, 6 needed"
    assert decide(of, [1.0]).unit == unit


def around(mean: float, n: int = 6, by: float = 0.1) -> list[float]:
    """Half of n values above a mean, half below, by as much."""
    return [mean + (by if i % 2 else -by) for i in range(n)]


@pytest.mark.parametrize(
    ("mean", "reads"),
    [
        (0.0, "holds"),
        (0.899, "holds"),
        (0.901, OPEN),  # three of six beyond the margin
        (1.099, OPEN),
        (1.101, "fails"),
        (9.0, "fails"),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_values_are_within_a_margin_or_beyond_an_end_of_it(mean, reads, sign):
    assert decide(entry("within"), around(sign * mean)).reading() == reads
    moved = decide(entry("within", bound=-7.0), around(sign * mean - 7))
    assert moved.reading() == reads
    assert moved.effect == pytest.approx(sign * mean - 7)


def test_values_on_both_sides_are_not_taken_for_distances():
    """Each is beyond the margin, their mean is 0: of few nothing is known, of many it is."""
    assert decide(entry("within"), [1.2, -1.2] * 3).reading() == OPEN
    assert decide(entry("within"), [1.2, -1.2] * 6).reading() == "holds"
    assert decide(entry("within", margin=0.5), [3.0, -3.0] * 3).reading() == OPEN


def test_at_an_end_of_the_margin_nothing_is_decided():
    for end in (1.0, -1.0):
        assert decide(entry("within"), [end] * 6).reading() == OPEN


@pytest.mark.parametrize(("ratio", "reads"), [(1.9, "holds"), (2.1, "fails")])
@pytest.mark.parametrize("power", [1, -1])
def test_on_a_logarithmic_scale_a_margin_is_a_factor_both_ways(ratio, reads, power):
    of = log_entry("within", bound=3.0, margin=2.0)
    case = decide(of, [3 * ratio**power] * 6)
    assert case.reading() == reads
    assert case.effect == pytest.approx(3 * ratio**power)


def test_on_a_logarithmic_scale_the_mean_is_geometric():
    """Of 1/9 and 3 it is below 1, of which the arithmetic one is above."""
    values = [1 / 9, 3.0] * 5
    case = decide(log_entry("less"), values)
    assert case.effect == pytest.approx(3**-0.5)
    assert case.low < case.effect < case.high
    # logarithms -2 and 1, five of each: sums as far as -5 are 2 (a - b) with a, b of five signs
    flips = itertools.product((1, -1), repeat=10)
    below = sum(sum(f[:5]) * -2 + sum(f[5:]) <= -5 for f in flips)
    assert case.p_holds == pytest.approx(below / 1024)
    assert decide(entry("less", bound=1.0), values).effect == pytest.approx(14 / 9)


@pytest.mark.parametrize("odd", [0.0, math.inf])
def test_zeros_and_infinities_have_a_logarithm(odd):
    """Those of the least and the greatest float."""
    side = "less" if odd == 0 else "greater"
    case = decide(log_entry(side), [odd] * 6)
    assert case.reading() == "holds"
    assert case.effect == pytest.approx(SMALLEST if odd == 0 else GREATEST, rel=1e-9)
    assert math.isfinite(case.effect)
    assert decide(log_entry("within", margin=2.0), [odd] * 6).reading() == "fails"
    # it outweighs five others, but by sign alone: half of all flips are as far
    mixed = decide(log_entry(side), [odd] + [0.5 if side == "greater" else 2.0] * 5)
    assert (mixed.reading(), mixed.p_holds) == (OPEN, 0.5)


@pytest.mark.parametrize("values", [[NAN], [1.0] * 6 + [NAN], [math.inf] * 6])
def test_on_a_linear_scale_only_finite_values_are_compared(values):
    with pytest.raises(ValueError, match="finite"):
        decide(entry(), values)


def test_a_bound_may_be_another_than_the_entrys():
    for bound, reads in ((None, "holds"), (0.05, "holds"), (0.15, OPEN), (0.45, "fails")):
        assert decide(entry(), POSITIVE, bound=bound).reading() == reads
    unbound = entry("less", bound=None)
    assert decide(unbound, POSITIVE, bound=0.41).reading() == "holds"
    with pytest.raises(Explained, match="The quantity is as it is"):
        decide(unbound, POSITIVE)
    assert decide(log_entry(), [3.0] * 6, bound=4.0).reading() == "fails"


def test_a_margin_may_be_another_than_the_entrys():
    """Half a margin's width is in the logarithm's unit."""
    of = entry("within", margin=99.0)
    for margin, reads in ((0.5, "holds"), (0.25, OPEN), (0.05, "fails")):
        assert decide(of, POSITIVE, margin=margin).reading() == reads
    assert decide(entry("within"), POSITIVE, margin=0.05).reading() == "fails"


SCORES = [-1.35, -0.76, -0.35, 0.0, 0.35, 0.76, 1.35]


def test_a_case_has_its_interval_and_effect_size(monkeypatch):
    """Of values whose mean is 3 and whose distances from a bound of 1 have a mean of 2."""
    monkeypatch.setattr(cases, "RESAMPLES", 9999)
    values = [3 + v for v in SCORES]
    case = decide(entry(bound=1.0), values)
    assert case.effect == pytest.approx(3)
    # Hedges' correction at 6 degrees of freedom: gamma(3)/(sqrt(3) gamma(5/2)) = 0.8687
    sd = math.sqrt(2 * (1.35**2 + 0.76**2 + 0.35**2) / 6)
    assert case.g == pytest.approx(0.8687 * 2 / sd, rel=1e-3)
    half = stats.t.ppf(0.975, 6) * sd / math.sqrt(7)
    # a bootstrap's is narrower than Student's t, and as wide but for its quantile
    assert 0.6 * half < case.high - case.effect < half
    assert case.high - case.effect == pytest.approx(case.effect - case.low, rel=0.1)
    logs = decide(log_entry(bound=math.e), [math.exp(v) for v in values])
    assert (logs.effect, logs.low, logs.high) == pytest.approx(
        (math.exp(case.effect), math.exp(case.low), math.exp(case.high))
    )
    assert logs.g == pytest.approx(case.g)


def test_an_interval_has_its_level():
    wide, narrow = (decide(entry(), SCORES, level=level) for level in (0.99, 0.6))
    assert wide.low < narrow.low < narrow.high < wide.high
    assert decide(entry(), SCORES).low == decide(entry(), SCORES, level=0.95).low
    assert wide.p_holds == narrow.p_holds


def test_two_have_students_interval_and_one_has_none():
    case = decide(entry(), [1.0, 2.0])
    half = stats.t.ppf(0.975, 1) * 0.5
    assert (case.effect, case.low, case.high) == pytest.approx((1.5, 1.5 - half, 1.5 + half))
    assert math.isnan(case.g)
    one = decide(entry(), [1.0])
    assert (one.n, one.effect) == (1, 1.0)
    assert all(map(math.isnan, (one.low, one.high, one.g)))
    same = decide(entry(), [2.0] * 6)
    assert (same.low, same.high) == (2, 2)
    assert math.isnan(same.g)


def test_the_same_values_have_the_same_interval_in_any_order(monkeypatch):
    monkeypatch.setattr(cases, "RESAMPLES", 9999)
    two = [decide(entry(), order) for order in (SCORES, SCORES[::-1])]
    assert two[0].low == pytest.approx(two[1].low, abs=0.05)
    assert decide(entry(), SCORES) == decide(entry(), SCORES)


@pytest.mark.parametrize("answer", [True, False])
def test_a_fact_needs_no_chance(answer):
    case = Case.known(answer, 0.25)
    assert case.reading() == case.reading(1e-9) == ("holds" if answer else "fails")
    assert (case.n, case.unit, case.effect) == (1, "formula", 0.25)
    assert math.isnan(case.p_holds)
    assert math.isnan(Case.known(answer).effect)


def test_what_is_unknown_says_why():
    assert Case.unknown("undecided: no twin").reading() == "undecided: no twin"
    assert Case().reading() == "no data"


def test_a_stricter_level_needs_more_seeds_and_a_smaller_p():
    case = decide(entry(), [*POSITIVE, -0.05])  # 4/128
    assert case.reading(0.05) == "holds"
    assert case.reading(0.02) == "undecided: p is above 0.02"
    assert case.reading(0.01) == "undecided: 7 seeds, 8 needed"
    assert decide(entry(), POSITIVE).reading(0.01) == "undecided: 6 seeds, 8 needed"
    assert too_few(7, alpha=0.01) == "undecided: 7 seeds, 8 needed"
