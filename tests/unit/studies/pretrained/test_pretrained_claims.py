"""Verdicts on the statements on residual gain: made-up tables whose right answer is plain."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
import statements
from pretrained_claimed import (
    AT_CHANCE,
    CONSISTENT,
    DAMPENS,
    ENTROPY,
    H25,
    INVERTS,
    LAST_BLOCK,
    NORM,
    NOW,
    REFERENCES,
    WAS,
    cells,
    claims,
    compared,
    evidence,
    frame,
    judged,
    model,
    published,
    row,
    studies,
    table_of_words,
    trained_models,
    verdict,
)
from scipy import stats

from normscope.ledger.claim import kind
from normscope.studies.pretrained import h25
from normscope.studies.pretrained.measures import FIRST_STUDIES, VALIDATION
from normscope.studies.pretrained.statistics import by_norm

ABOVE = {"log_gain": 0.2, "mean": 1.2, "low": 0.19, "high": 0.21, "reads": "above 1"}
ABOVE |= {"status": "REJECTED", "below_one": 0}
UNTOLD = {"reads": "not told apart from 1", "p": 0.1, "p_holm": 0.3}


def test_where_all_layernorm_gains_are_below_1_dampening_is_not_rejected():
    line = row(DAMPENS, evidence())
    assert (line[NOW], line[WAS]) == (
        "not rejected",
        "STRONGLY CONFIRMED in print, CONFIRMED in the file of results",
    )
    words = "above 1: none. below 1: gpt2-xl, published, 0.819 [0.811, 0.827];"
    assert line["corrected"].startswith(f"geometric means {words}")


def test_a_single_layernorm_model_above_1_rejects_that_layernorm_dampens():
    line = row(DAMPENS, evidence(model("bloom-3b", 0.05)))
    assert line[NOW] == "rejected"
    # exp 0.05, 0.04 and 0.06
    words = "above 1: bloom-3b 1.051 [1.041, 1.062]. below 1: "
    assert line["corrected"].startswith(f"geometric means {words}")
    assert line[WAS] == row(DAMPENS, evidence())[WAS]


@pytest.mark.parametrize("measured", [model("bloom-3b", 0.05, **UNTOLD), model("a", 2, "RMSNorm")])
def test_a_gain_that_is_not_told_apart_or_of_rmsnorm_rejects_no_dampening(measured):
    line = row(DAMPENS, evidence(measured))
    untold = measured["norm"] == "LayerNorm"
    words = "not shown: not all are told apart from 1" if untold else "not rejected"
    assert line[NOW] == words
    assert line["corrected"].startswith("geometric means above 1: none.")
    named = "bloom-3b 1.051 [1.041, 1.062]" if untold else "none"
    assert line["corrected"].endswith(f". not told apart from 1: {named}.")


def test_measured_models_take_the_place_of_published_ones_of_the_same_name():
    above = published(gpt2_xl=ABOVE)
    assert verdict(DAMPENS, evidence(published=above)) == "rejected"
    line = row(DAMPENS, evidence(model("gpt2-xl", -0.1), published=above))
    assert line[NOW] == "not rejected"
    assert "gpt2-xl 0.905 [" in line["corrected"]
    assert line["corrected"].count("gpt2-xl") == 1
    assert "gpt2-xl 1.200 (t" in line["as published"]
    back = row(DAMPENS, evidence(model("gpt2-xl", 0.1)))
    assert back[NOW] == "rejected"


def test_published_studies_of_fine_tuned_models_are_no_evidence():
    """The twins repeat base models."""
    twin = model("gpt2-xl", 0.2) | {"experiment": "twins", "reads": "–"}
    assert repr(claims(evidence(twin))) == repr(claims(evidence()))


def test_models_tuned_from_another_are_no_evidence_whatever_they_show():
    """And do not count in Holm's correction: of 8 p of 0.006 all are clear, of 9 none."""
    first = [r | {"p": 0.006} for r in published()]
    bases = [*first, model("a", -0.2, p=0.006)]
    tuned = model("a-it", 0.2, r=-0.9, r_p=1e-9, r_deviation=-0.9, p_deviation=1e-9, base="a")
    both = claims(evidence(tuned, published=bases)), claims(evidence(published=bases))
    assert repr(both[0]) == repr(both[1])
    assert verdict(DAMPENS, evidence(published=bases)) == "not rejected"
    more = evidence(tuned | {"p": 0.006, "base": math.nan, "log_gain": -0.2}, published=bases)
    assert verdict(DAMPENS, more) == "not shown: not all are told apart from 1"


@pytest.mark.parametrize(
    ("gains", "was"), [((0.8, 0.94), "CONSISTENT"), ((0.96, 0.8), "DIVERGENT")]
)
def test_gpt2_xl_was_consistent_with_pythia_below_the_published_threshold(gains, was):
    means = zip(("gpt2_xl", "pythia_6_9b"), gains, strict=True)
    models = published(**{name: {"mean": gain} for name, gain in means})
    assert row(CONSISTENT, evidence(published=models))[WAS] == was


HIGHER = "RMSNorm is higher; that the norm is why is not shown"


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        ({}, HIGHER),
        ({"p": 0.049, "smallest": 0.049}, HIGHER),
        (
            {"p": 0.05, "smallest": 0.05, "layernorm": 3, "rmsnorm": 3},
            "undecided: 3 and 3 families cannot give p < 0.05",
        ),
        ({"p": 0.05}, "not shown: p 0.0500"),
        ({"p": 0.051}, "not shown: p 0.0510"),
        ({"p": 0.99}, "not shown: p 0.990"),
        (
            {"p": 0.1, "smallest": 0.1, "layernorm": 2, "rmsnorm": 3},
            "undecided: 2 and 3 families cannot give p < 0.05",
        ),
        ({"p": math.nan, "smallest": math.nan, "layernorm": 0}, "no data"),
        ({"unit": "model"}, "no data"),
        ({"comparison": "measured"}, "no data"),
    ],
)
def test_families_decide_whether_rmsnorm_is_higher(changes, reads):
    groups = frame([compared(**changes)], compared())
    assert verdict(NORM, evidence(by_norm=groups)) == reads


def test_models_on_the_wrong_side_reject_that_the_norm_decides_whatever_the_test_gives():
    up, down = model("bloom-3b", 0.05), model("llama-x", -0.05, "RMSNorm")
    for p in (0.01, 0.9):
        groups = frame([compared(p=p)], compared())
        assert verdict(NORM, evidence(up, down, by_norm=groups)) == (
            "rejected: bloom-3b above 1, llama-x below 1"
        )
    right = model("bloom-3b", -0.05), model("llama-x", 0.05, "RMSNorm")
    assert verdict(NORM, evidence(*right)) == HIGHER
    untold = model("bloom-3b", 0.05, **UNTOLD)
    assert verdict(NORM, evidence(untold, model("bare", 0.5, "none"))) == HIGHER


def test_the_published_dichotomy_is_of_the_seven_models():
    assert row(NORM, evidence())[WAS] == "STRONGLY CONFIRMED"
    one = evidence(published=published(gpt2_xl=ABOVE))
    assert row(NORM, one)[WAS] == "mixed"
    assert "LayerNorm 0.819 to 1.200; RMSNorm 1.221 to 1.221." in row(NORM, one)["as published"]
    also = [*published(), model("gpt-j-6b", 0.3) | {"experiment": "gptj"}]
    assert row(NORM, evidence(published=also))[WAS] == "STRONGLY CONFIRMED"


# by seed: ln of RMSNorm's gain over LayerNorm's, of pre-norm models
PAIRS = [0.1, 0.2, 0.1, 0.2, 0.1, 0.2]


def trained(differences: Sequence[float], protocol: str = "small") -> pd.DataFrame:
    """chosen.csv of pre-norm models, and of an arm that nobody asks for."""
    logs = {"layernorm": [0.3] * len(differences), "rmsnorm": [0.3 + d for d in differences]}
    rows = [
        {"protocol": protocol, "arm": arm, "placement": "pre", "seed": seed}
        | {"gain_last": math.exp(value), "diverged_at": math.nan}
        for arm, values in (logs | {"dyt": [9.0] * len(differences)}).items()
        for seed, value in enumerate(values)
    ]
    columns = ["protocol", "arm", "placement", "seed", "diverged_at", "gain_last"]
    return pd.DataFrame(rows, columns=columns).astype({"gain_last": float})


@pytest.mark.parametrize(
    ("differences", "reads"),
    [
        ([], "no data"),
        (PAIRS[:5], "undecided: 5 seeds, 6 needed"),
        (PAIRS, "holds"),
        ([-d for d in PAIRS], "fails"),
        # the same within 5%: 0.01 of ln 1.05 = 0.049
        ([d / 10 for d in PAIRS], "fails"),
        ([*PAIRS[:5], -0.6], "undecided: p is above 0.05"),
    ],
)
def test_pairs_of_trained_models_decide_all_else_equal(differences, reads):
    """One protocol decides; what another shows stands beside it."""
    other = trained([-1.0, -1.1], "nanogpt")
    chosen = pd.concat([trained(differences), other], ignore_index=True)
    claim = statements.claim_on("norms_differ_alone", {"main.chosen": chosen})
    assert claim.verdict == reads
    if reads == "holds":
        (case,) = [c for name, c in claim.cases.items() if "small" in name]
        assert (case.n, case.effect) == (6, pytest.approx(math.exp(0.15)))
        assert case.p_holds == pytest.approx(stats.ttest_1samp(PAIRS, 0).pvalue / 2)


RISES = [0.3, 0.2, 0.25, 0.35, 0.3, 0.28]
FALLS = [-v for v in RISES]
WIDE = [0.3, -0.3, 0.2, -0.2, 0.1, -0.1]


@pytest.mark.parametrize(
    ("layernorm", "rmsnorm", "inverts", "follows"),
    [
        (RISES, RISES, "holds", "fails"),
        (FALLS, FALLS, "fails", "holds"),
        (FALLS, RISES, "fails", "depends"),
        (FALLS, WIDE, "fails", "depends"),
        (WIDE, WIDE, "undecided", "undecided"),
        (FALLS[:5], FALLS, "undecided", "depends"),
    ],
)
def test_models_that_differ_in_their_seed_alone_decide_on_entropy(
    layernorm, rmsnorm, inverts, follows
):
    """Where the gain is below 1, as planted here, abs(gain - 1) has the contrary sign."""
    chosen = trained_models(layernorm=layernorm, rmsnorm=rmsnorm)
    assert kind(verdict(INVERTS, evidence(chosen=chosen))) == inverts
    assert kind(verdict(ENTROPY, evidence(chosen=chosen))) == follows


def test_what_so_many_prompts_can_show_is_said():
    """Of 25 prompts the critical value of r is 0.396."""
    for key in (INVERTS, ENTROPY):
        assert "of 25 prompts an r below 0.40 is none" in row(key, evidence())["corrected"]


def test_signs_as_published_are_of_gpt2_alone():
    down = {name: {"r_deviation": -0.1} for name in ("gpt2_xl", "gpt2_large", "gpt2_medium")}
    one = {"gpt2_xl": down["gpt2_xl"]}
    for models, reads in ((down, "CONFIRMED"), (one, "PARTIAL"), ({}, "REJECTED")):
        line = row(INVERTS, evidence(published=published(**models)))
        assert line[WAS] == f"{reads} for GPT-2"


def test_where_every_gain_is_below_1_the_sign_flip_is_named():
    mixed = model("bloom-3b", -0.2, below_one=24)
    corrected = row(INVERTS, evidence(mixed, model("opt-125m", -0.3)))["corrected"]
    _, _, names = corrected.partition("Where every gain is below 1 (")
    names = set(names.partition(")")[0].split(", "))
    assert names == {"opt-125m", "pythia-6.9b", "gpt2-xl", "gpt2-large", "gpt2-medium"}


def test_the_last_blocks_gain_stands_beside_the_published_ratios():
    logs = {"last_gain": math.log(1.25), "gain_hidden_states": math.log(0.75)}
    gains = frame(cells("opt-125m", bos=("off", "on"), **logs), cells("")[0])
    gains.loc[gains["positions"] != "last", "log_gain"] = 9.0
    gains.loc[gains["bos"] == "on", "log_gain"] = 9.0
    line = row(LAST_BLOCK, evidence(sensitivity=gains))
    assert "opt-125m, measured: 0.7500 and 1.2500 (" in line["corrected"]
    assert (
        line["as published"] == "pythia-6.9b 0.9867, with the final norm 0.3199 "
        "(n 3); gpt-j-6b 1.1328, with the final norm 0.3727 (n 3)."
    )
    words = "rejected: other numbers in 1 of 1 measured"
    assert (line[WAS], line[NOW]) == ("CORRECT", words)


UNTOLD_LABS = "several labs: not told apart from a coin"


@pytest.mark.parametrize(
    ("predicted", "was", "now"),
    # exact intervals of 95%: 16 of 16 from 0.025^(1/16), none up to 1 - 0.025^(1/16)
    [
        (judged(16, 16, 0.794, 1.0), "VALIDATED", "several labs: better than a coin"),
        (AT_CHANCE, "PARTIALLY_VALIDATED", UNTOLD_LABS),
        (judged(7, 16, 0.198, 0.701), "FALSIFIED", UNTOLD_LABS),
        (judged(0, 16, 0.0, 0.206), "FALSIFIED", "several labs: worse than a coin"),
        (judged(0, 16, 0.0, 0.206, decided=3, decided_high=0.708), "FALSIFIED", UNTOLD_LABS),
        (judged(7, 16, 0.198, 0.701, decided_high=0.4), "FALSIFIED", UNTOLD_LABS),
        (judged(8, 16, 0.2, 0.5), "PARTIALLY_VALIDATED", UNTOLD_LABS),
        (None, "no data", "no data"),
        (AT_CHANCE | {"experiment": "measured"}, "no data", "measured: not told apart from a coin"),
        (AT_CHANCE | {"metric": "last_gain"}, "no data", "no data"),
    ],
)
def test_h25_is_held_against_a_coin(predicted: dict[str, Any] | None, was, now):
    line = row(H25, evidence(h25=frame([predicted] if predicted else [], AT_CHANCE)))
    assert (line[WAS], line[NOW]) == (was, now)


@pytest.fixture(scope="module")
def alone() -> pd.DataFrame:
    """Of the published numbers, without a measured model."""
    observations, models = studies()
    first = models[models["experiment"].isin(FIRST_STUDIES)]
    seven = first[first["model"].isin(VALIDATION)]
    groups = [("published, its seven models", seven), ("measured, else published", first)]
    norms = by_norm(observations, groups, 0.95, 99)
    accuracy = h25.accuracy(h25.published_models(REFERENCES, 0.95), 0.95)
    return table_of_words(
        evidence(published=models.to_dict("records"), by_norm=norms, h25=accuracy)
    )


def test_the_published_numbers_alone_reject_that_layernorm_dampens(alone):
    line = alone.loc[DAMPENS]
    assert (line[NOW], line[WAS]) == (
        "rejected",
        "INCONCLUSIVE in print, REJECTED in the file of results",
    )
    was = line["as published"]
    assert was.startswith("gpt2-xl 1.019 (t +3.84, p > 0.999), gpt2-large 1.014 (t +2.84, p 0.995)")
    assert "gpt2-medium 1.163 (t +10.57, p " in was
    assert was.endswith("; p one-sided, of a mean below 1.")
    above, _, below = line["corrected"].partition(" below 1: ")
    assert all(name in above for name in ("gpt2-xl", "gpt2-large", "gpt2-medium", "gpt-j-6b"))
    assert below.startswith("pythia-6.9b, published, 0.802 [")


def test_the_published_numbers_alone_cannot_decide_between_norms(alone):
    """1/35 of 4 and 3 models, 1/10 of 2 and 3 families."""
    line = alone.loc[NORM]
    models, families = "4 against 3 models: p 0.0571", "2 against 3 families: p 0.100"
    assert f"{models}, smallest reachable 0.0286;" in line["corrected"]
    assert f"{families}, smallest reachable 0.100;" in line["corrected"]
    gpt = [f"gpt2-{size} above 1" for size in ("xl", "large", "medium")]
    assert line[NOW] == f"rejected: {', '.join([*gpt, 'gpt-j-6b above 1'])}"
    assert line[WAS] == "mixed"


def test_the_published_numbers_alone_name_the_sign_flip(alone):
    line = alone.loc[INVERTS]
    assert "pythia-6.9b −0.199, gpt2-xl +0.045" in line["as published"]
    words = (
        "raw r of entropy and gain: pythia-6.9b −0.199 (raw +0.199), gpt2-xl +0.045 (raw +0.013)"
    )
    assert words in line["corrected"]
    assert line["corrected"].endswith(
        "Where every gain is below 1 (pythia-6.9b), abs(gain - 1) is 1 - gain: one is the "
        "other with the other sign, by algebra."
    )


def test_the_published_numbers_alone_have_h25_right_for_7_of_16(alone):
    line = alone.loc[H25]
    was = (
        "right for 2 of 2 (VALIDATED); right for 8 of 8 (VALIDATED); right for 7 of 16 (FALSIFIED)."
    )
    assert (line["as published"], line[WAS]) == (was, "FALSIFIED")
    words = "right for 7 of 16 models (7 families), 0.44 [0.20, 0.70], and for 3 of the 11 whose"
    assert f"several labs: {words}" in line["corrected"]
    assert "Pythia: right for 8 of 8 models (1 family), 1.00 [0.63, 1.00]" in line["corrected"]
    assert line[NOW] == f"Pythia: undecided, one family; {UNTOLD_LABS}"


def test_the_published_numbers_alone_say_of_no_cell_that_it_is_nan(alone):
    assert not alone.astype(str).map(lambda cell: "nan" in cell.lower() or not cell).any(axis=None)
