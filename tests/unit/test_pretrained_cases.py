"""Tests of the statements on residual gain, against scipy and by hand."""

import math
from typing import Any, Literal

import numpy as np
import pytest
import statements
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrained_claimed import (
    NORM,
    claims,
    compared,
    evidence,
    frame,
    model,
    predictions,
    published,
)
from scipy import stats

from normscope.statistics.inference import separation
from normscope.studies.pretrained.cases import (
    deviation_case,
    difference_case,
    entropy_case,
    family_case,
    gain_case,
    prediction_case,
)

NAN = math.nan


@pytest.mark.parametrize(
    ("log_gain", "above", "p_holds"),
    [(-0.2, False, 0.02), (-0.2, True, 0.98), (0.2, True, 0.02), (0.2, False, 0.98)],
)
def test_a_two_sided_p_is_one_of_each_side(log_gain, above, p_holds):
    """0.04 of a gain below 1 is 0.02 for "dampens" and 0.98 for "expands"."""
    case = gain_case(model("a", log_gain, p=0.04), above=above)
    assert case.p_holds == pytest.approx(p_holds)
    assert case.p_fails == pytest.approx(1 - p_holds)
    assert (case.n, case.unit, case.smallest) == (25, "prompt", 0.0)
    assert case.effect == pytest.approx(math.exp(log_gain))
    assert case.low == pytest.approx(math.exp(log_gain - 0.01))
    assert case.high == pytest.approx(math.exp(log_gain + 0.01))


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=25, unique=True))
@settings(max_examples=50)
def test_the_p_of_a_gain_is_scipys_of_one_side(logs):
    if np.ptp(logs) < 1e-3 or abs(np.mean(logs)) < 1e-9:
        return
    two_sided = float(stats.ttest_1samp(logs, 0).pvalue)
    row = model("a", float(np.mean(logs)), p=two_sided, n=len(logs))
    sides: tuple[tuple[bool, Literal["greater", "less"]], ...]
    sides = (True, "greater"), (False, "less")
    for above, side in sides:
        case = gain_case(row, above=above)
        assert case.p_holds == pytest.approx(
            float(stats.ttest_1samp(logs, 0, alternative=side).pvalue)
        )
        assert case.p_holds + case.p_fails == pytest.approx(1)


def test_without_a_test_of_the_gain_nothing_is_known():
    lost = {"p": NAN, "low": NAN, "high": NAN, "n": 1}
    case = gain_case(model("a", 0.2, **lost), above=True)
    assert case.open == "no data"
    assert math.isnan(case.p_holds)
    assert case.reading() == "no data"


@pytest.mark.parametrize(("r", "p_holds"), [(-0.4, 0.03), (0.4, 0.97)])
def test_an_inversion_is_a_negative_correlation(r, p_holds):
    case = deviation_case(model("a", 0.2, r_deviation=r, p_deviation=0.06))
    assert (case.p_holds, case.p_fails) == (pytest.approx(p_holds), pytest.approx(1 - p_holds))
    assert case.effect == r
    assert deviation_case(model("a", 0.2, r_deviation=NAN, p_deviation=NAN)).open == "no data"


# two means by hand: 1.2 and 1.0, variances 0.04/25 and 0.09/16
ONE = {"mean": 1.2, "sd": 0.2, "n": 25}
OTHER = {"mean": 1.0, "sd": 0.3, "n": 16}


def test_a_difference_of_two_models_is_welchs():
    case = difference_case(ONE, OTHER)
    a, b = 0.04 / 25, 0.09 / 16
    t = 0.2 / math.sqrt(a + b)
    df = (a + b) ** 2 / (a**2 / 24 + b**2 / 15)
    assert case.p_fails == pytest.approx(float(stats.t.sf(t, df)))
    half = float(stats.t.ppf(0.975, df)) * math.sqrt(a + b)
    assert (case.effect, case.low, case.high) == pytest.approx((0.2, 0.2 - half, 0.2 + half))
    assert (case.n, case.unit) == (41, "prompt")
    assert case.p_holds == 1.0


SUMMARY = st.tuples(st.floats(0.5, 2), st.floats(0.01, 1), st.integers(2, 40))


@given(SUMMARY, SUMMARY)
@settings(max_examples=50)
def test_p_of_a_difference_is_scipys(a, b):
    one, other = (dict(zip(("mean", "sd", "n"), of, strict=True)) for of in (a, b))
    expected = float(stats.ttest_ind_from_stats(*a, *b, equal_var=False).pvalue)
    for case in (difference_case(one, other), difference_case(other, one)):
        assert 2 * case.p_fails == pytest.approx(expected, rel=1e-9)
        # a difference speaks against the statement, the lack of one never for it
        assert case.p_holds == 1.0
        assert case.reading() != "holds"


@pytest.mark.parametrize("changes", [{"n": 1}, {"sd": NAN}])
def test_of_one_prompt_no_difference_is_known(changes):
    assert difference_case(ONE | changes, OTHER).open == "no data"
    assert difference_case(OTHER, ONE | changes).open == "no data"


def test_families_are_compared_by_permutation():
    """Of 3 and 3 families, all above: 1 of 20 arrangements; of both sides that is 0.1."""
    found = separation([-0.3, -0.2, -0.1], [0.1, 0.2, 0.3])
    assert (found.p, found.smallest) == (1 / 20, 1 / 20)
    row = compared(found.p, found.smallest, layernorm=3, rmsnorm=3)
    case = family_case(row)
    assert (case.p_holds, case.smallest, case.n, case.unit) == (1 / 20, 1 / 20, 6, "family")
    assert case.effect == pytest.approx(math.exp(0.4))
    assert (case.low, case.high) == pytest.approx((math.exp(0.3), math.exp(0.5)))
    assert case.reading() == "undecided: 6 families give no p below 0.1"
    five = family_case(compared(1 / 252, 1 / 252))
    assert five.reading() == "holds"


def test_a_test_of_one_side_says_nothing_for_the_other():
    case = family_case(compared(1.0, 1 / 252))
    assert case.p_fails == 1.0
    assert case.reading() == "undecided: p is above 0.05"


def test_families_are_a_case_beside_the_models():
    found = claims(evidence())[NORM]
    assert list(found.cases) == [
        *(r["model"] for r in published() if r["norm"] == "LayerNorm"),
        *(r["model"] for r in published() if r["norm"] == "RMSNorm"),
        "families",
    ]
    none = frame([compared(unit="model")], compared())
    assert "families" not in claims(evidence(by_norm=none))[NORM].cases
    # every model is asked whether it is on its norm's side of 1: both at 0.2, on the right ones
    assert all(c.p_holds < 0.01 for c in found.cases.values() if c.unit == "prompt")
    wrong = claims(evidence(model("llama-x", -0.2, "RMSNorm")))[NORM].cases["llama-x"]
    assert wrong.p_fails < 0.01


def law(r: float, low: float, p: float = 0.04, **changes: Any) -> dict[str, Any]:
    return model("a", 0.1, r=r, r_p=p, r_without_low=low, r_low=-0.1, r_high=0.9, **changes)


@pytest.mark.parametrize(
    ("r", "low", "is_open"),
    [
        (0.6, 0.3, False),  # half is kept
        (0.6, 0.29, True),
        (0.6, -0.3, True),
        (0.6, NAN, True),  # prompts of one category
        (-0.6, -0.9, False),  # a negative r is against the statement, whatever carries it
        (-0.6, NAN, False),
    ],
)
def test_one_category_that_carries_a_correlation_leaves_the_law_open(r, low, is_open):
    case = entropy_case(law(r, low))
    assert case.p_holds == (1.0 if is_open else pytest.approx(0.02 if r > 0 else 0.98))
    assert case.p_fails == pytest.approx(0.98 if r > 0 else 0.02)
    assert (case.effect, case.low, case.high) == (r, -0.1, 0.9)


def test_without_a_correlation_the_law_is_open():
    assert entropy_case(law(NAN, NAN, NAN)).open == "no data"


H25 = statements.CLAIMS.claims["h25"]


@pytest.mark.parametrize(
    ("shares", "p_holds", "p_fails"),
    [
        ([[True]] * 6, 1 / 64, 1.0),
        ([[False]] * 6, 1.0, 1 / 64),
        # a share of a half is no evidence: two flips are alike, so that 2 of 64
        ([[True]] * 5 + [[True, False]], 2 / 64, 1.0),
        # 5 of 6, one against: flips that are as large are none, that one or any one other: 7 of 64
        ([[True]] * 5 + [[False]], 7 / 64, 63 / 64),
        # a family of eight counts once
        ([[True] * 8] + [[False]] * 5, 63 / 64, 7 / 64),
    ],
)
def test_predictions_are_held_against_a_coin_by_family(shares, p_holds, p_fails):
    case = prediction_case(predictions({f"f{i}": s for i, s in enumerate(shares)}), H25, 0.95)
    assert (case.p_holds, case.p_fails) == (p_holds, p_fails)
    assert (case.n, case.unit, case.smallest) == (6, "family", 1 / 64)


def test_the_share_is_of_models_and_its_interval_family_case(monkeypatch):
    monkeypatch.setattr(f"{prediction_case.__module__}.RESAMPLES", 9999)
    right = {"a": [True] * 5, "b": [False], "c": [True, False], "d": [True, True]}
    case = prediction_case(predictions(right), H25, 0.95)
    assert case.effect == pytest.approx(8 / 10)
    sums, sizes = np.array([5.0, 0, 1, 2]), np.array([5.0, 1, 2, 2])
    expected = stats.bootstrap(
        (sums, sizes),
        lambda total, size, axis: total.sum(axis=axis) / size.sum(axis=axis),
        paired=True,
        n_resamples=9999,
        vectorized=True,
        rng=np.random.default_rng(5),
    ).confidence_interval
    assert case.low == pytest.approx(expected.low, abs=0.06)
    assert case.high == pytest.approx(expected.high, abs=0.03)
    assert case.low < case.effect < case.high <= 1


def test_predictions_are_those_of_the_study_of_several_labs_and_the_published_metric():
    there = {"a": [True], "b": [False]}
    for changes in ({"experiment": "sweep"}, {"experiment": "measured"}, {"metric": "last_gain"}):
        assert prediction_case(predictions(there, **changes), H25, 0.95).open == "no data"
    assert prediction_case(predictions({}), H25, 0.95).open == "no data"
    two = prediction_case(predictions(there), H25, 0.95)
    assert two.effect == 0.5
    assert math.isnan(two.low)
    assert two.reading() == "undecided: 2 families, 6 needed"
