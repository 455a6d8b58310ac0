"""The numbers behind verdicts in words, and tables of which parts are missing."""

import re

import pandas as pd
import pytest
from jacobian_evidence import (
    AGREE,
    ALIKE,
    CLAIMS,
    COSTS,
    COSTS_MORE,
    EMPTY,
    FORMULA,
    GRADIENT,
    HARM,
    NOW,
    ONE,
    PREDICT,
    RADIAL,
    SELECTION,
    WAS,
    all_diverged,
    claims,
    column,
    evidence,
    from_files,
    layers,
    models,
    no_surrogate,
    prediction,
    reading,
    verdict,
    without_layernorm,
    words,
)

from normscope.ledger.judgement import judge
from normscope.studies.jacobian.measures import MEASURES
from normscope.studies.jacobian.tables import ANY

B = "[+0.500, +0.500]"
NUMBERS: dict[int, list[str]] = {
    COSTS_MORE: [
        f"softmax: +0.500 {B} under FA, – under backpropagation",
        "sigmoid: +0.200 [+0.200, +0.200] under FA, – under backpropagation",
    ],
    # times 16, the corrected width
    RADIAL: [
        "block norms: softmax 1.129 [1.129, 1.129], sigmoid 0.570 [0.570, 0.570]",
        "final norm: softmax 4.000 [4.000, 4.000], sigmoid 0.570 [0.570, 0.570]",
    ],
    PREDICT: ["rho 0.90 (n 6); of r_radial at the final norm: –.", "Over all cells"],
    HARM: [
        "block norms 0.960, final norm 0.960",
        f"cost +0.500 {B} under FA, – under backpropagation, against 1.000",
        "costs – under FA",
    ],
    ALIKE: [
        f"all norms: +0.500 {B} under FA, –",
        f"in the block norms alone: +0.500 {B} under FA, –",
        "in the final norm alone: – under FA, –",
    ],
    FORMULA: ["largest relative error: 0.000200", "with g = gain dL/dy: 1.0e-12"],
    # the final norm's is sqrt((1 - 0.1 - 0.25)/0.9) = 0.8498, beside 0.96
    AGREE: ["largest difference: 0.1102", "token by token, with eps: 1.0e-16"],
    GRADIENT: ["block norms 0.990 [0.990, 0.990], final norm 0.980 [0.980, 0.980]"],
}
WAS_NUMBERS: dict[int, list[str]] = {
    RADIAL: ["softmax 0.2993, sigmoid 0.1710"],  # (2 x 0.324 + 0.25)/3
    HARM: ["block norms 0.800, final norm 0.800"],
    ALIKE: ["all norms: 0.299; of the block norms 0.324, of the final norm 0.250"],
    FORMULA: ["0.000200"],
    AGREE: ["0.0498"],  # of the final norm, whose cosine is planted as 0.8
    GRADIENT: ["block norms 0.990, final norm 0.980"],
}
APART = (
    ({"place": "final", "attention": "softmax"}, {"r_radial": 0.25}),
    ({"place": "final", "variant": "corrected"}, {"alignment": 0.98}),
    (ONE, {"error_without_gain": 2e-4}),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_numbers_behind_a_verdict_are_in_words(claim):
    found = claims(evidence(*APART))[claim]
    for number in NUMBERS[claim]:
        assert number in found.corrected
    for number in WAS_NUMBERS.get(claim, []):
        assert number in found.published


def test_the_true_gradients_cosine_is_not_that_of_another_signal():
    table = layers()
    noise = table.assign(signal="backprop", **dict.fromkeys(MEASURES, 0.5))
    noise[["error_closed_form", "error_identity", "error_without_gain"]] = 0.0
    both = pd.concat([table, noise[noise["variant"] == "corrected"]])
    for name in ("published", WAS, "corrected", NOW):
        assert column(name, evidence(layers=both)) == column(name, evidence())


def test_a_backpropagation_twin_stands_beside_it():
    costs = {"softmax backprop center_scale all": [0.25] * 6}
    for claim in (COSTS_MORE, HARM, ALIKE):
        shown = words(claim, costs=costs)
        assert f"+0.500 {B} under FA, +0.250 [+0.250, +0.250] under backpropagation" in shown


def test_what_another_surrogate_costs_is_shown():
    costs = {"softmax fa projected all": [-0.125] * 6}
    assert "costs −0.125 [−0.125, −0.125] under FA" in words(HARM, costs=costs)


def test_costs_in_the_final_norm_alone_are_shown():
    costs = {"softmax fa center_scale final": [0.125] * 6}
    assert "final norm alone: +0.125 [+0.125, +0.125] under FA, –" in words(ALIKE, costs=costs)


def test_correlations_over_all_cells_are_shown_with_their_n():
    rows = [prediction()] + [
        prediction(rho, 12, norm_backward=ANY, surrogates_in=ANY, predictor=name)
        for name, rho in (("left_in_blocks", 0.31), ("left_in_final", -0.5), ("error_blocks", 1.0))
    ]
    shown = words(PREDICT, rows=rows)
    assert "block norms: 0.31 (n 12); at the final norm: −0.50 (n 12)" in shown
    assert shown.endswith("1.00 (n 12).")


@pytest.mark.parametrize("tables", EMPTY)
def test_what_is_missing_leaves_a_table_of_words(tables):
    found = claims(evidence(**tables()))
    assert len(found) == 8
    for claim in found:
        for text in (claim.published, claim.corrected):
            assert not re.search(r"\b(nan|inf|None)\b", text), text
        for text in (claim.own, claim.verdict):
            assert re.fullmatch(r"holds|fails|no data|undecided: \S.*", text), text
    for judgement in judge(found, 0.05):
        assert judgement.verdict in ("holds", "fails", "undecided")
        assert bool(judgement.why) == (judgement.verdict == "undecided")


@pytest.mark.parametrize("tables", [without_layernorm, from_files])
def test_without_layernorm_there_is_no_data(tables):
    found = evidence(**tables())
    assert column(WAS, found) == column(NOW, found) == ["no data"] * 8


def test_where_all_diverged_nothing_is_concluded():
    found = evidence(**all_diverged())
    assert column(WAS, found) == ["no data"] * 8
    reads = dict.fromkeys(CLAIMS, SELECTION) | dict.fromkeys((FORMULA, AGREE), "no data")
    assert dict(enumerate(column(NOW, found))) == reads


@pytest.mark.parametrize("claim", [COSTS_MORE, PREDICT, HARM, ALIKE])
def test_without_a_surrogate_trained_there_is_no_data_of_costs(claim):
    assert verdict(claim, **no_surrogate()) == "no data"


@pytest.mark.parametrize("gone", ["softmax", "sigmoid"])
def test_one_kind_of_attention_compares_nothing(gone):
    table, of_models = layers(), models(COSTS)
    table = table[table["attention"] != gone]
    found = evidence(layers=table, models=of_models[of_models["attention"] != gone])
    assert [column(NOW, found)[c] for c in (COSTS_MORE, RADIAL)] == ["no data"] * 2
    assert column(WAS, found)[RADIAL] == "no data"


def test_direct_feedback_is_not_feedback_alignment():
    table, of_models = layers(), models(COSTS)
    extra = table.assign(feedback="dfa", r_radial=0.0, alignment=0.0)
    costly = of_models.assign(feedback="dfa", cost=99.0)
    found = evidence(layers=pd.concat([table, extra]), models=pd.concat([of_models, costly]))
    # AGREE is what every layer has to show
    assert reading("holds", found) | {AGREE} == reading("holds", evidence())
