"""Tests of the statements on residual gain, against scipy and by hand."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import pytest
import statements
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrained_claimed import (
    NORM,
    REFERENCES,
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
    family_case,
    gain_case,
    prediction_case,
)
from normscope.studies.pretrained.h25 import published_models

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


def test_families_are_compared_by_permutation():
    """Of 3 and 3 families, all above: 1 of 20 arrangements; of both sides that is 0.1."""
    comparison = separation([-0.3, -0.2, -0.1], [0.1, 0.2, 0.3])
    assert (comparison.p, comparison.smallest) == (1 / 20, 1 / 20)
    row = compared(comparison.p, comparison.smallest, layernorm=3, rmsnorm=3)
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
    claim = claims(evidence())[NORM]
    assert list(claim.cases) == [
        *(r["model"] for r in published() if r["norm"] == "LayerNorm"),
        *(r["model"] for r in published() if r["norm"] == "RMSNorm"),
        "families",
    ]
    none = frame([compared(unit="model")], compared())
    assert "families" not in claims(evidence(by_norm=none))[NORM].cases
    # every model is asked whether it is on its norm's side of 1: both at 0.2, on the right ones
    assert all(c.p_holds < 0.01 for c in claim.cases.values() if c.unit == "prompt")
    wrong = claims(evidence(model("llama-x", -0.2, "RMSNorm")))[NORM].cases["llama-x"]
    assert wrong.p_fails < 0.01


@pytest.mark.parametrize(("predicted", "p_holds"), [("above 1", 5e-5), ("below 1", 1 - 5e-5)])
def test_a_prediction_is_of_the_side_of_1(predicted, p_holds):
    (row,) = predictions({"a": [True]}, predicted=predicted).to_dict("records")
    case = prediction_case(row | {"predicted": predicted})
    assert case.p_holds == pytest.approx(p_holds)
    assert (case.effect, case.low, case.high, case.n) == (1.2, 1.1, 1.3, 25)


def test_one_model_on_the_other_side_refutes_h25_and_none_on_it_confirms():
    """Every model is a case, of the study of several labs and of what is measured here."""
    for right, reads in (([True] * 3, "holds"), ([True, True, False], "fails")):
        claim = statements.claim_on("h25", evidence(h25_models=predictions({"a": right})))
        assert statements.judged(claim).verdict == reads
    for changes in ({"experiment": "sweep"}, {"metric": "last_gain"}):
        gone = predictions({"a": [False]}, **changes)
        assert statements.claim_on("h25", evidence(h25_models=gone)).cases == {}


def test_the_p_of_a_published_gain_is_students_of_its_summary():
    """GPT-2 XL: t = +3.84 against 1 over 25 prompts, as its notebook prints."""
    rows = published_models(REFERENCES, 0.95)
    xl = rows[(rows["model"] == "gpt2-xl") & (rows["metric"] == "last_gain")].iloc[0]
    assert xl["p"] == pytest.approx(2 * stats.t.sf(3.84, 24), rel=0.01)


def by_prompt(one: Sequence[float], other: Sequence[float], study: str = "gpt2") -> pd.DataFrame:
    rows = [
        {"experiment": study, "model": name, "prompt": f"p{i}", "gain": gain}
        for name, gains in (("gpt2-xl", one), ("pythia-6.9b", other))
        for i, gain in enumerate(gains)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("apart", "reads"), [(0.05, "holds"), (-0.05, "holds"), (0.149, "open"), (0.3, "fails")]
)
def test_two_models_are_consistent_within_the_margin_prompt_by_prompt(apart, reads):
    """Prompts differ by up to 3, the models by little: it is pairs that count."""
    prompts = [1.0, 2.0, 3.0, 1.5, 2.5, 4.0, 0.5]
    noise = [0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01]
    one = [v + apart + e for v, e in zip(prompts, noise, strict=True)]
    case = statements.claim_on("consistent", evidence(observations=by_prompt(one, prompts))).cases[
        ""
    ]
    assert case.effect == pytest.approx(apart)
    assert case.p_holds == pytest.approx(
        max(
            stats.ttest_1samp(np.subtract(one, prompts), -0.15, alternative="greater").pvalue,
            stats.ttest_1samp(np.subtract(one, prompts), 0.15, alternative="less").pvalue,
        )
    )
    assert case.reading().startswith("undecided" if reads == "open" else reads)


def test_what_is_measured_here_goes_before_what_is_published():
    far = by_prompt([2.0, 2.1, 2.2, 2.0, 2.1, 2.2], [1.0] * 6, "measured")
    both = pd.concat([by_prompt([1.0, 1.1] * 3, [1.0] * 6), far])
    case = statements.claim_on("consistent", evidence(observations=both)).cases[""]
    assert case.effect == pytest.approx(1.1)
