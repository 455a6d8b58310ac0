"""Verdicts on the script's statements: planted numbers under which each holds or fails."""

import math

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
    ENTRIES,
    FAILS,
    FORMULA,
    GRADIENT,
    HARM,
    IN_BLOCKS,
    KEYS,
    LOSSES_ONLY,
    ONE,
    OTHER,
    PREDICT,
    PUBLISHED_TOO,
    RADIAL,
    WAS,
    WAS_BLOCKS,
    C,
    P,
    case,
    claims,
    column,
    evidence,
    models,
    prediction,
    reading,
    verdict,
)

from normscope.studies.jacobian.tables import ANY


def test_the_statements_are_the_ledgers_in_its_order():
    found = claims(evidence())
    assert tuple(c.key for c in found) == KEYS
    about = "softmax radial larger close average backward printed dL/dy".split()
    for claim, word in enumerate(about):
        assert word in found[claim].claim
        assert found[claim].entry == ENTRIES[KEYS[claim]]
        assert len(found[claim].cases) == 1
    assert "a relative error of 1e-09 in float64" in found[FORMULA].test
    assert "is above 0.9, under FA" in found[GRADIENT].test


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
    assert column(WAS, found) == column(WAS, evidence())


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
    found = claims(evidence(was, now))[AGREE]
    assert (found.own, found.verdict) == (reads, reads)


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


# one of n equal values, beside what it is compared with
EFFECTS = [
    (COSTS_MORE, 0.3),
    (RADIAL, 16 * (0.07056 - 0.03564)),  # times the corrected width
    (HARM, 0.5),
    (ALIKE, 0.0),
    (GRADIENT, 0.99),
]


@pytest.mark.parametrize(("claim", "effect"), EFFECTS)
def test_a_test_over_seeds_has_its_effect_interval_n_and_exact_p(claim, effect):
    found = case(claim)
    assert (found.n, found.unit) == (6, "model")
    assert (found.effect, found.low, found.high) == pytest.approx((effect,) * 3)
    assert found.p_holds == found.smallest == 1 / 64
    assert found.fact is None


def test_a_test_of_a_formula_has_its_largest_error_and_no_p():
    off = ({**ONE, "protocol": C}, {"error_without_gain": 2e-9, "cos_center_scale": 0.9811})
    for claim, effect in ((FORMULA, 2e-9), (AGREE, 0.0011)):
        found = case(claim, off)
        assert (found.fact, found.n, found.unit) == (False, 1, "formula")
        assert found.effect == pytest.approx(effect, rel=1e-6)
        assert math.isnan(found.p_holds)
        assert case(claim).fact is True


@pytest.mark.parametrize(
    ("key", "bound", "claim", "own", "now"),
    [
        ("softmax_costs_more", 0.31, COSTS_MORE, "no data", "fails"),
        ("radial_is_larger", 0.56, RADIAL, "holds", "fails"),  # 16 x 0.03492 is 0.559
        ("formula_is_exact", 1e-13, FORMULA, "fails", "fails"),
        ("shares_give_cosines", 0.0008, AGREE, "fails", "fails"),
        ("signal_is_gradient", 0.995, GRADIENT, "fails", "fails"),
    ],
)
def test_thresholds_are_those_of_the_ledger(key, bound, claim, own, now):
    """Cosines are off by 0.0009."""
    entries = {**ENTRIES, key: ENTRIES[key].model_copy(update={"bound": bound})}
    was = {**ONE, "protocol": P, "variant": "published"}, {"cos_center_scale": 0.9009}
    now_off = {**ONE, "protocol": C}, {"cos_center_scale": 0.9809}
    found = evidence(was, now_off, entries=entries)
    assert claims(found)[claim].verdict == now
    assert claims(found)[claim].own == own
    assert reading("holds", found) == DECIDED - {claim}


@pytest.mark.parametrize(
    ("sds", "cost", "fail"), [(4.0, 1.6, set()), (4.0, 2.1, {HARM}), (1.0, 0.6, {HARM})]
)
def test_a_margin_has_as_many_standard_deviations_as_the_configuration_says(sds, cost, fail):
    """One is 0.5: margins of 2 and 0.5, around a cost of 0 and of 0.5 in the block norms."""
    found = evidence(costs={ALL: [cost] * 6}, margin_sds=sds)
    assert reading("fails", found) == fail
    assert reading("holds", found) == DECIDED - fail
    assert f"against {sds / 2:.3f}." in claims(found)[HARM].corrected


def test_the_level_of_intervals_is_the_configurations():
    """Of six scattered costs; bounds at 60% lie within those at 99%."""
    scattered = {ALL: [0.1, 0.3, 0.4, 0.6, 0.7, 0.9]}
    spread = [0.95, 0.97, 0.98, 0.96, 0.99, 0.94]
    planted = (
        {"protocol": C, "feedback": "fa", "attention": "softmax", "place": "block"},
        {"alignment": spread, "r_radial": spread},
    )
    for claim in (COSTS_MORE, RADIAL, HARM, ALIKE, GRADIENT):
        wide, narrow = (case(claim, planted, costs=scattered, level=v) for v in (0.99, 0.6))
        assert wide.low < narrow.low < narrow.effect < narrow.high < wide.high
