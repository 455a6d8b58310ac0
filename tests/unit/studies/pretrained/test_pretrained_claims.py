"""Statements on residual gain, judged by planted tables and by the published numbers."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import pytest
import statements
from hypothesis import assume, given
from hypothesis import strategies as st
from normscope.studies.pretrained.claims import family_case, gain_case, prediction_case
from normscope.verdicts.claim import TESTS
from pretrained_claimed import (
    KEYS,
    REFERENCES,
    cells,
    compared,
    evidence,
    finds,
    judged,
    judgement,
    model,
    predicted,
    published,
    trained_models,
)
from processes import ROOT
from properties import examples
from scipy import stats

from normscope.errors import Explained
from normscope.statistics.inference import separation
from normscope.studies.pretrained import h25
from normscope.studies.pretrained.measures import FIRST_STUDIES, VALIDATION
from normscope.studies.pretrained.statistics import by_model, by_norm, published_observations

NAN = math.nan
ABOVE = {"log_gain": 0.2, "mean": 1.2, "low": 0.19, "high": 0.21, "status": "REJECTED"}
LAYERNORM = [row["model"] for row in published() if row["norm"] == "LayerNorm"]
NOT_SHOWN = "not shown: not all are told apart from 1"


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=25, unique=True))
@examples(50)
def test_the_p_value_of_a_gain_is_that_of_scipys_one_sided_test(logs):
    assume(np.ptp(logs) > 1e-3 and abs(np.mean(logs)) > 1e-9)
    mean = float(np.mean(logs))
    row = model("a", mean, p=float(stats.ttest_1samp(logs, 0).pvalue), n=len(logs))
    sides: tuple[tuple[bool, Literal["greater", "less"]], ...]
    sides = (True, "greater"), (False, "less")
    for above, side in sides:
        case = gain_case(row, above=above)
        p = float(stats.ttest_1samp(logs, 0, alternative=side).pvalue)
        assert (case.p_holds, case.p_fails) == pytest.approx((p, 1 - p))
        assert (case.n, case.unit) == (len(logs), "prompt")
        gains = np.exp([mean, mean - 0.01, mean + 0.01])
        assert (case.effect, case.low, case.high) == pytest.approx(tuple(gains))


def test_one_prompt_is_no_test():
    case = gain_case(model("a", 0.2, p=NAN, low=NAN, high=NAN, n=1), above=True)
    assert case.answer() == "no data"


def test_families_are_compared_by_a_one_sided_permutation_test():
    """Of 3 and 3 families, all above: 1 of 20 arrangements; two-sided that is 0.1."""
    test = separation([-0.3, -0.2, -0.1], [0.1, 0.2, 0.3])
    case = family_case(compared(p=test.p, smallest=test.smallest, layernorm=3, rmsnorm=3))
    assert (case.p_holds, case.p_fails, case.n, case.unit) == (1 / 20, 1, 6, "family")
    expected = math.exp(0.4), math.exp(0.3), math.exp(0.5)
    assert (case.effect, case.low, case.high) == pytest.approx(expected)
    assert case.answer() == "undecided: 6 families give no p below 0.1"
    assert family_case(compared(p=1 / 252, smallest=1 / 252)).answer() == "holds"


@pytest.mark.parametrize(("is_right", "p_holds"), [(True, 5e-5), (False, 1 - 5e-5)])
def test_a_prediction_is_about_a_side_of_1(is_right, p_holds):
    (row,) = predicted(is_right)
    case = prediction_case(row)
    assert case.p_holds == pytest.approx(p_holds)
    assert (case.effect, case.low, case.high, case.n) == (1.2, 1.1, 1.3, 25)


@pytest.mark.parametrize(
    ("measured", "reads", "listed"),
    [
        ([], "not rejected", "above 1: none. below 1: gpt2-xl, published, 0.819 [0.811, 0.827];"),
        # exp 0.05, 0.04 and 0.06
        ([model("b", 0.05)], "rejected", "above 1: b 1.051 [1.041, 1.062]. below 1: "),
        ([model("b", 0.05, p=0.1)], NOT_SHOWN, "above 1: none. below 1: "),
        ([model("b", 2, "RMSNorm")], "not rejected", "above 1: none. below 1: "),
    ],
)
def test_one_layernorm_model_above_1_rejects_that_layernorm_dampens(measured, reads, listed):
    found = finds("dampens", *measured)
    assert found.answer == reads
    assert found.corrected.startswith(f"geometric means {listed}")
    verdict = "STRONGLY CONFIRMED in print, CONFIRMED in the file of results"
    assert found.its_verdict == verdict


def test_a_measured_model_replaces_the_published_one():
    above = published({"gpt2-xl": ABOVE})
    assert finds("dampens", published=above).answer == "rejected"
    found = finds("dampens", model("gpt2-xl", -0.1), published=above)
    assert found.answer == "not rejected"
    assert found.corrected.count("gpt2-xl") == 1
    assert "gpt2-xl 1.200 (t" in found.published


@pytest.mark.parametrize("row", [{"experiment": "twins", "model": "gpt2-xl"}, {"base": "a"}])
def test_fine_tuned_models_are_left_out(row):
    tuned = model("a-it", 0.2, r=-0.9, r_deviation=-0.9) | row
    for key in KEYS:
        assert repr(finds(key, tuned)) == repr(finds(key))


def test_holms_correction_is_over_the_base_models():
    """0.006 is below 0.05 / 8 and above 0.05 / 9."""
    eight = [row | {"p": 0.006} for row in [*published(), model("a", -0.2)]]
    tuned = model("a-it", -0.2, p=0.006, base="a")
    assert finds("dampens", tuned, published=eight).answer == "not rejected"
    ninth = tuned | {"base": NAN}
    assert finds("dampens", ninth, published=eight).answer == NOT_SHOWN


def by_prompt(one: Sequence[float], other: Sequence[float], study: str = "gpt2") -> pd.DataFrame:
    rows = [
        {"experiment": study, "model": name, "prompt": f"p{i}", "gain": gain}
        for name, gains in (("gpt2-xl", one), ("pythia-6.9b", other))
        for i, gain in enumerate(gains)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("apart", "reads"),
    [(0.05, "holds"), (-0.05, "holds"), (0.149, "undecided"), (0.3, "fails")],
)
def test_two_models_are_consistent_within_the_margin_prompt_by_prompt(apart, reads):
    """Prompts differ by up to 3, the models by little: only pairs show it."""
    prompts = [1.0, 2.0, 3.0, 1.5, 2.5, 4.0, 0.5]
    noise = [0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01]
    one = [v + apart + e for v, e in zip(prompts, noise, strict=True)]
    case = finds("consistent", observations=by_prompt(one, prompts)).cases[""]
    assert case.effect == pytest.approx(apart)
    differences = np.subtract(one, prompts)
    above = stats.ttest_1samp(differences, -0.15, alternative="greater").pvalue
    below = stats.ttest_1samp(differences, 0.15, alternative="less").pvalue
    assert case.p_holds == pytest.approx(max(above, below))
    assert case.answer().startswith(reads)


def test_measured_prompts_come_before_published_ones():
    far = by_prompt([2.0, 2.1, 2.2, 2.0, 2.1, 2.2], [1.0] * 6, "measured")
    both = pd.concat([by_prompt([1.0, 1.1] * 3, [1.0] * 6), far])
    case = finds("consistent", observations=both).cases[""]
    assert case.effect == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("gains", "verdict"), [((0.8, 0.94), "CONSISTENT"), ((0.96, 0.8), "DIVERGENT")]
)
def test_two_models_were_consistent_below_the_published_threshold(gains, verdict):
    xl, pythia = ({"mean": gain} for gain in gains)
    models = published({"gpt2-xl": xl, "pythia-6.9b": pythia})
    assert finds("consistent", published=models).its_verdict == verdict


HIGHER = "RMSNorm is higher; that the norm is why is not shown"


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        ({"p": 0.049, "smallest": 0.049}, HIGHER),
        ({"p": 0.05}, "not shown: p 0.0500"),
        (
            {"p": 0.05, "smallest": 0.05, "layernorm": 3, "rmsnorm": 3},
            "undecided: 3 and 3 families cannot give p < 0.05",
        ),
        ({"p": NAN, "smallest": NAN, "layernorm": 0}, "no data"),
        ({"unit": "model"}, "no data"),
        ({"comparison": "measured"}, "no data"),
    ],
)
def test_families_decide_whether_rmsnorm_is_higher(changes, reads):
    assert finds("norms_decide", by_norm=[compared(**changes)]).answer == reads


@pytest.mark.parametrize(
    ("measured", "reads"),
    [
        (
            [model("bloom", 0.05), model("llama-x", -0.05, "RMSNorm")],
            "rejected: bloom above 1, llama-x below 1",
        ),
        ([model("bloom", -0.05), model("llama-x", 0.05, "RMSNorm")], HIGHER),
        ([model("bloom", 0.05, p=0.1), model("bare", 0.5, "none")], HIGHER),
    ],
)
def test_a_model_on_the_wrong_side_rejects_that_the_norm_decides(measured, reads):
    assert finds("norms_decide", *measured).answer == reads


def test_every_model_is_a_case_and_the_families_are_one():
    cases = dict(finds("norms_decide", model("llama-x", -0.2, "RMSNorm")).cases)
    assert list(cases) == [*LAYERNORM, "llama-x", *VALIDATION[4:], "families"]
    assert cases.pop("llama-x").p_fails < 0.01
    assert all(case.p_holds < 0.01 for case in cases.values() if case.unit == "prompt")


def test_the_published_dichotomy_is_about_the_seven_models():
    assert finds("norms_decide").its_verdict == "STRONGLY CONFIRMED"
    finding = finds("norms_decide", published=published({"gpt2-xl": ABOVE}))
    assert finding.its_verdict == "mixed"
    assert finding.published == "LayerNorm 0.819 to 1.200; RMSNorm 1.221 to 1.221."
    eighth = model("gpt-j-6b", 0.3, experiment="gptj")
    assert finds("norms_decide", eighth).its_verdict == "STRONGLY CONFIRMED"


RISES = [0.3, 0.2, 0.25, 0.35, 0.3, 0.28]
FALLS = [-v for v in RISES]
WIDE = [0.3, -0.3, 0.2, -0.2, 0.1, -0.1]


@pytest.mark.parametrize(
    ("values", "inverts", "follows"),
    [
        (RISES, "fails", "holds"),
        (FALLS, "holds", "fails"),
        (WIDE, "undecided: p is above 0.05", "undecided: p is above 0.05"),
    ],
)
def test_trained_models_decide_about_entropy(values, inverts, follows):
    chosen = trained_models("pre", layernorm=values, rmsnorm=values)
    assert finds("follows_entropy", reading="pre_norm", chosen=chosen).answer == follows
    assert finds("inverts", reading="pre_norm", chosen=chosen).answer == inverts


@pytest.mark.parametrize(("key", "sign"), [("inverts", -1), ("follows_entropy", 1)])
def test_every_pretrained_model_is_a_case_by_its_own_correlation(key, sign):
    """By scipy's one-sided test of Pearson's r over the prompts of a model."""
    entropy, noise = np.arange(25.0), np.tile([3.0, -4.0, 1.0, 2.0, -2.0], 5)
    deviations = sign * entropy + 3 * noise
    side: Literal["greater", "less"] = "greater" if sign > 0 else "less"
    r = stats.pearsonr(entropy, deviations)
    row = model("opt-125m", -0.1, r_deviation=r.statistic, p_deviation=r.pvalue)
    case = finds(key, row).cases["opt-125m"]
    expected = stats.pearsonr(entropy, deviations, alternative=side).pvalue
    assert case.p_holds == pytest.approx(expected, rel=1e-6)
    assert (case.n, case.unit, case.answer()) == (25, "prompt", "holds")
    against = model("opt-125m", -0.1, r_deviation=-r.statistic, p_deviation=r.pvalue)
    assert finds(key, against).cases["opt-125m"].answer() == "fails"
    names = [*LAYERNORM] if key == "inverts" else [row["model"] for row in published()]
    assert set(finds(key).cases) == set(names)


def test_correlations_are_given_with_the_critical_value_of_25_prompts():
    """0.396, from tables of Pearson's r."""
    for key in ("inverts", "follows_entropy"):
        assert "of 25 prompts an r below 0.40 is none" in finds(key).corrected


def test_the_published_signs_are_those_of_gpt2():
    down = {"r_deviation": -0.1}
    for models, verdict in (
        (LAYERNORM[:3], "CONFIRMED"),
        (["gpt2-xl"], "PARTIAL"),
        ([], "REJECTED"),
    ):
        rows = published(dict.fromkeys(models, down))
        assert finds("inverts", published=rows).its_verdict == f"{verdict} for GPT-2"


def test_where_every_gain_is_below_1_the_sign_flip_is_named():
    below = [model("bloom", -0.2, below_one=24), model("opt-125m", -0.3)]
    _, _, names = finds("inverts", *below).corrected.partition("every gain is below 1 (")
    assert set(names.partition(")")[0].split(", ")) == {"opt-125m", *LAYERNORM}


@pytest.mark.parametrize(("ratio", "reads"), [(math.log(0.75), "rejected"), (NAN, "undecided")])
def test_the_gain_of_the_last_block_is_compared_with_the_ratio_of_hidden_states(ratio, reads):
    logs = {"last_gain": math.log(1.25), "gain_hidden_states": ratio}
    gains = cells("opt-125m", bos=("off", "on"), **logs)
    gains.loc[(gains["positions"] != "last") | (gains["bos"] == "on"), "log_gain"] = 9.0
    found = finds("true_last_block", sensitivity=gains)
    assert found.answer.startswith(reads)
    assert ("opt-125m" in found.corrected) == (reads == "rejected")
    if reads == "rejected":
        assert found.cases[""].effect == pytest.approx(1 - 0.75 / 1.25)


CHANCE = "not told apart from a coin"
SWEEP = judged(8, 8, experiment="sweep")


@pytest.mark.parametrize(
    ("studies", "verdict", "reads"),
    [
        ([judged(16, 16)], "VALIDATED", "several labs: better than a coin"),
        ([judged(8, 16)], "PARTIALLY_VALIDATED", f"several labs: {CHANCE}"),
        ([judged(0, 16)], "FALSIFIED", "several labs: worse than a coin"),
        # not where models whose interval includes 1 are left out
        ([judged(0, 16, decided_high=0.708)], "FALSIFIED", f"several labs: {CHANCE}"),
        ([judged(13, 16, decided_low=0.118)], "PARTIALLY_VALIDATED", f"several labs: {CHANCE}"),
        ([judged(7, 16, decided_high=0.4)], "FALSIFIED", f"several labs: {CHANCE}"),
        ([judged(8, 16, high=0.5)], "PARTIALLY_VALIDATED", f"several labs: {CHANCE}"),
        ([], "", "no data"),
        ([judged(8, 16, experiment="measured")], "", f"measured: {CHANCE}"),
        ([judged(8, 16, metric="last_gain")], "", "no data"),
        ([SWEEP], "", "Pythia: better than a coin"),
        ([SWEEP | {"families": 1}], "", "Pythia: undecided, one family"),
    ],
)
def test_h25_is_compared_with_a_coin(studies, verdict, reads):
    found = finds("h25", h25=studies)
    assert (found.its_verdict, found.answer) == (verdict, reads)


@pytest.mark.parametrize(
    ("reading", "metric"), [("penultimate", "gain_hidden_states"), ("last", "last_gain")]
)
def test_one_model_on_the_other_side_refutes_h25(reading, metric):
    """By the gain that a reading names; of a model, the study with the most prompts counts."""

    def h25_on(*rows: dict):
        return judgement("h25", reading, h25_models=rows)

    for right, reads in (([True] * 3, "holds"), ([True, True, False], "fails")):
        assert h25_on(*predicted(*right, metric=metric)).verdict == reads
    assert h25_on(*predicted(False, metric="total_amp")).claim.findings[reading].cases == {}
    few = predicted(False, metric=metric, n=5)
    (case,) = h25_on(*few).claim.findings[reading].cases.values()
    assert case.answer() == "undecided: 5 prompts, 6 needed"
    many = predicted(True, metric=metric, experiment="sweep")
    (case,) = h25_on(*few, *many).claim.findings[reading].cases.values()
    assert case.answer() == "holds"


def test_the_gain_that_h25_predicts_is_named_by_a_known_quantity():
    reading = statements.CLAIMS.entries["h25"].first
    other = reading.model_copy(update={"quantity": "gain of the last blok"})
    with pytest.raises(Explained, match="did you mean gain of the last block"):
        TESTS["h25"](other, evidence())


@pytest.mark.parametrize("key", ["dampens", "consistent", "norms_decide", "inverts"])
def test_without_a_layernorm_model_there_is_no_data(key):
    models = [row for row in published() if row["norm"] == "RMSNorm"]
    none = compared(p=NAN, smallest=NAN, layernorm=0)
    assert finds(key, published=models, by_norm=[none]).answer == "no data"


def test_the_published_numbers_alone_decide_every_statement():
    prompts = pd.read_csv(ROOT / "data" / "reference_prompts.csv")
    observations = published_observations(prompts, REFERENCES)
    models = by_model(observations, 0.95, 99)
    first = models[models["experiment"].isin(FIRST_STUDIES)]
    groups = {
        "published": first[first["model"].isin(VALIDATION)],
        "measured, else published": first,
    }
    tables = {
        "published": models.to_dict("records"),
        "by_norm": by_norm(observations, groups, 0.95, 99),
        "h25": h25.accuracy(h25.published_models(REFERENCES, 0.95), 0.95),
    }
    alone = {key: finds(key, **tables) for key in KEYS}
    assert alone["dampens"].answer == "rejected"
    assert alone["norms_decide"].its_verdict == "mixed"
    assert alone["h25"].answer == f"Pythia: undecided, one family; several labs: {CHANCE}"
    for found in alone.values():
        for words in (found.published, found.its_verdict, found.corrected, found.answer):
            assert words
            assert "nan" not in words.lower()
