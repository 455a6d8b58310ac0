"""Verdicts on the script's statements: planted numbers under which each holds or fails."""

import pandas as pd
import pytest
from jacobian_evidence import (
    AGREE,
    ALIKE,
    ALL,
    BLOCKS,
    COSTS,
    COSTS_MORE,
    DECIDED,
    FAILS,
    FORMULA,
    GRADIENT,
    HARM,
    IN_BLOCKS,
    LOSSES_ONLY,
    NOW,
    ONE,
    OTHER,
    PREDICT,
    PUBLISHED_TOO,
    RADIAL,
    WAS,
    WAS_BLOCKS,
    C,
    P,
    claims,
    evidence,
    models,
    prediction,
    reading,
    verdict,
)

from normscope.jacobian.tables import ANY


def test_the_statements_and_their_columns():
    found = claims(evidence())
    columns = ["claim", "test", "as published", "its verdict", "corrected", "verdict"]
    assert list(found.columns) == columns
    about = "softmax radial larger close average backward printed dL/dy".split()
    for claim, word in enumerate(about):
        assert word in found["claim"].iloc[claim]
    assert len(found) == len(about)


NO_SAMPLE = "undecided: 6 crossed settings are no independent sample"


def test_every_claim_holds_as_planted_but_that_of_a_correlation():
    assert reading("holds", evidence()) == DECIDED
    assert reading(NO_SAMPLE, evidence()) == {PREDICT}
    assert reading("holds", evidence(), WAS) == set(PUBLISHED_TOO)
    assert reading("no data", evidence(), WAS) == set(LOSSES_ONLY)


@pytest.mark.parametrize(
    ("planted", "changes", "fail"),
    [
        *(([planted], {}, {claim}) for claim, planted in FAILS.items()),
        ([], {"costs": {ALL: [0.1] * 6}}, {COSTS_MORE}),
        ([], {"costs": {ALL: [1.1] * 6}}, {HARM}),
        ([], {"costs": {ALL: [1.6] * 6}}, {HARM, ALIKE}),
        ([], {"costs": {IN_BLOCKS: [1.6] * 6}}, {ALIKE}),
    ],
)
def test_a_claim_fails_as_planted_and_no_other(planted, changes, fail):
    found = evidence(*planted, **changes)
    assert reading("fails", found) == fail
    assert reading("holds", found) == DECIDED - fail
    assert claims(found)[WAS].tolist() == claims(evidence())[WAS].tolist()


@pytest.mark.parametrize(
    ("claim", "planted"),
    [
        (
            RADIAL,
            (
                {**WAS_BLOCKS, "attention": "sigmoid"},
                {"r_radial": 0.36, "cos_center_scale": 0.6**0.5},
            ),
        ),
        (FORMULA, ({**ONE, "protocol": P}, {"error_without_gain": 2e-9})),
        (AGREE, ({**ONE, "protocol": P, "variant": "published"}, {"cos_center_scale": 0.9011})),
        (GRADIENT, ({**BLOCKS, "protocol": P}, {"alignment": 0.85})),
    ],
)
def test_a_claim_fails_under_its_own_protocol_as_planted(claim, planted):
    found = evidence(planted)
    assert reading("fails", found, WAS) == {claim}
    assert reading("holds", found) == DECIDED


@pytest.mark.parametrize(
    ("off", "reads"), [(-0.0011, "fails"), (-0.0009, "holds"), (0.0009, "holds")]
)
def test_shares_and_cosines_may_differ_by_a_thousandth_either_way(off, reads):
    was = {**ONE, "protocol": P, "variant": "published"}, {"cos_center_scale": 0.9 + off}
    now = {**ONE, "protocol": C}, {"cos_center_scale": 0.98 + off}
    found = claims(evidence(was, now)).iloc[AGREE]
    assert (found[WAS], found[NOW]) == (reads, reads)


def test_what_a_test_does_not_name_decides_nothing():
    shares = [
        (BLOCKS | {"feedback": "backprop", "attention": "sigmoid"}, {"r_radial": 0.8}),
        (OTHER | {"place": "final"}, {"r_radial": 0.8}),
        (OTHER | {"variant": "published"}, {"r_radial": 0.8}),
        (OTHER | {"protocol": P}, {"r_radial": 0.8}),
        (BLOCKS | {"place": "final"}, {"alignment": 0.1}),
        (OTHER, {"alignment": 0.1}),
        ({"variant": "corrected"}, {"error_closed_form": 0.5}),
        ({"variant": "published"}, {"error_without_gain": 0.5}),
        (BLOCKS | {"feedback": "backprop"}, {"cos_center_scale": 0.1}),
        (OTHER, {"cos_center_scale": 0.1}),
    ]
    # whose shares and cosines are not each other's
    assert reading("holds", evidence(*shares)) == DECIDED - {AGREE}
    assert verdict(AGREE, ({}, {"error_identity": 0.5})) == "holds"


@pytest.mark.parametrize(
    ("names", "moved"),
    [
        (
            [
                "sigmoid backprop center_scale all",
                "sigmoid fa projected all",
                "sigmoid fa center_scale blocks",
                "softmax backprop center_scale all",
                "softmax fa projected all",
                "softmax fa center_scale final",
            ],
            set(),
        ),
        (["sigmoid fa center_scale all"], {COSTS_MORE}),
        ([IN_BLOCKS], {ALIKE}),
    ],
)
def test_costs_that_a_test_does_not_name_decide_nothing(names, moved):
    found = evidence(costs=dict.fromkeys(names, [9.0] * 6))
    assert reading("fails", found) == moved
    assert reading("holds", found) == DECIDED - moved


def test_costs_of_another_protocol_decide_nothing():
    other = models({name: [9.0 * ("sigmoid" in name)] * 6 for name in COSTS}, protocol=P)
    both = evidence(models=pd.concat([models(COSTS), other]))
    assert reading("holds", both) == DECIDED


def test_predictions_of_another_protocol_rule_place_or_predictor_are_no_data():
    others = [
        {"protocol": P},
        {"norm_backward": "projected"},
        {"norm_backward": ANY, "surrogates_in": ANY},
        {"surrogates_in": "blocks"},
        {"predictor": "left_in_final"},
    ]
    rows = [prediction(-1.0) | changes for changes in others]
    assert verdict(PREDICT, rows=rows) == "no data"
    assert verdict(PREDICT, rows=[*rows, prediction()]) == NO_SAMPLE
