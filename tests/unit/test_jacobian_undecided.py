"""When a statement is left open: seeds, intervals, divergence, ceilings, margins."""

from typing import Any

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
    LARGE,
    NAN,
    NOW,
    OF_SEEDS,
    OTHER,
    PREDICT,
    RADIAL,
    SELECTION,
    SMALL,
    WAS,
    C,
    Costs,
    P,
    claims,
    column,
    evidence,
    layers,
    models,
    picked,
    prediction,
    reading,
    verdict,
    words,
)

from normscope.studies.jacobian.measures import MEASURES


def short(costs: Costs, n: int) -> pd.DataFrame:
    return models({name: of_seeds[:n] for name, of_seeds in costs.items()})


@pytest.mark.parametrize(("n", "seeds"), [(2, "2 seeds"), (3, "3 seeds"), (5, "5 seeds")])
@pytest.mark.parametrize("fail", [False, True])
def test_a_corrected_verdict_over_seeds_needs_six(n, seeds, fail):
    """2^(1 - 6) is 0.031, below 5%; 2^(1 - 5) is 0.0625."""
    planted = [FAILS[RADIAL], FAILS[GRADIENT]] if fail else []
    tables: dict[str, Any] = {"layers": layers(*planted, now=n), "picked": picked(now=n)}
    costs = {**COSTS, ALL: [1.6 if fail else 0.5] * 6}
    rows = [prediction(-0.9 if fail else 0.9, seeds=n)]
    found = evidence(models=short(costs, n), rows=rows, **tables)
    assert reading(f"undecided: {seeds}, 6 needed", found) == set(OF_SEEDS)


def test_on_one_model_formulas_are_judged_and_nothing_else():
    for planted, reads in (([], "holds"), ([FAILS[FORMULA], FAILS[AGREE]], "fails")):
        tables: dict[str, Any] = {"layers": layers(*planted, now=1), "picked": picked(now=1)}
        found = evidence(models=short(COSTS, 1), rows=[prediction(seeds=1)], **tables)
        assert reading(reads, found) == {FORMULA, AGREE}
        assert {column(NOW, found)[c] for c in OF_SEEDS} == {"undecided: 1 seed, 6 needed"}


OPEN = "undecided: p is above 0.05"
# three on the side where the claim holds, three on the other: of 64 flips 8 are as far
WIDE = [3.0, 3.0, 3.0, 0.1, 0.1, 0.1]


def test_seeds_on_both_sides_decide_nothing():
    planted = [
        (OTHER, {"r_radial": [0.01, 0.01, 0.01, 0.08, 0.08, 0.08]}),  # beside 0.07056
        (BLOCKS, {"alignment": [0.99, 0.99, 0.99, 0.89, 0.89, 0.89]}),
    ]
    found = evidence(*planted, costs={ALL: WIDE})
    assert reading(OPEN, found) >= {COSTS_MORE, RADIAL, GRADIENT}
    for claim in (COSTS_MORE, RADIAL, GRADIENT):
        (of,) = claims(found)[claim].cases.values()
        assert (of.p_holds, of.n) == (8 / 64, 6)
    # two of six beyond the margin of 1, the mean within
    assert verdict(HARM, costs={ALL: [-3.0, -3.0, -3.0, -3.0, 1.5, 1.5]}) == OPEN


def test_one_seed_of_six_on_the_other_side_decides_nothing():
    """Even one that is all but 0: the two flips that are as far are 4/64, two-sided."""
    assert verdict(COSTS_MORE, costs={ALL: [0.5] * 5 + [0.19]}) == OPEN
    assert verdict(COSTS_MORE, costs={ALL: [0.5] * 5 + [0.21]}) == "holds"
    seven = {"sigmoid fa center_scale all": [0.2] * 7, ALL: [0.5] * 6 + [0.19]}
    assert verdict(COSTS_MORE, costs=seven) == "holds"  # 4/128


def test_costs_that_differ_either_way_are_not_taken_for_distances():
    """Each of 1.2 is beyond the margin, their mean is not."""
    assert verdict(ALIKE, costs={ALL: [1.7, -0.7] * 3}) == OPEN


def test_with_costs_and_without_a_margin_there_is_no_data():
    """No exact model was picked, so that nothing tells how far its losses are apart."""
    for claim in (HARM, ALIKE):
        assert verdict(claim, picked=picked()[:0]) == "no data"


SEVEN = [0.5] * 7
LOST = [*LARGE, None]


@pytest.mark.parametrize(
    ("lost", "selections"),
    [
        (ALL, {COSTS_MORE, HARM, ALIKE}),
        (IN_BLOCKS, {ALIKE}),
        ("sigmoid fa center_scale all", {COSTS_MORE}),
        ("softmax fa projected all", set()),
        ("softmax backprop center_scale all", set()),
    ],
)
def test_a_cost_that_diverged_leaves_a_selection_to_the_claims_about_it(lost, selections):
    costs: Costs = dict.fromkeys(COSTS, SEVEN) | {lost: LOST}
    assert reading(SELECTION, evidence(costs=costs)) == selections


@pytest.mark.parametrize(
    ("attention", "selections"), [("softmax", {RADIAL, GRADIENT}), ("sigmoid", {RADIAL})]
)
def test_an_exact_model_that_diverged_leaves_a_selection(attention, selections):
    """Its rows have no measures; the other six would be enough."""
    lost = {"protocol": C, "feedback": "fa", "attention": attention}
    table = layers(({**lost, "seed": 6}, dict.fromkeys(MEASURES, NAN)), now=7)
    assert table["r_mean"].isna().any()
    found = evidence(layers=table, picked=picked(now=7, lost=[lost]))
    assert reading(SELECTION, found) == selections
    assert reading("holds", found) == DECIDED - selections


def test_a_model_that_diverged_is_no_matter_to_a_claim_about_others():
    gone = picked(lost=[{"feedback": "backprop"}, {"protocol": P}])
    others = [
        gone[gone["protocol"] == C].assign(diverged=True, val_loss=NAN, **changes)
        for changes in ({"norm_backward": "center_scale"}, {"arm": "rmsnorm"})
    ]
    assert gone["diverged"].any()
    assert reading("holds", evidence(picked=pd.concat([gone, *others]))) == DECIDED


def test_a_correlation_over_models_of_which_some_diverged_is_of_a_selection():
    assert verdict(PREDICT, rows=[prediction(diverged=1)]) == SELECTION


@pytest.mark.parametrize(
    ("rho", "n", "reads"),
    [
        (1.0, 12, "undecided: 12 crossed settings are no independent sample"),
        (-1.0, 4, "undecided: 4 crossed settings are no independent sample"),
        (NAN, 2, "no data"),
    ],
)
def test_a_correlation_over_crossed_settings_decides_nothing(rho, n, reads):
    assert verdict(PREDICT, rows=[prediction(rho, n)]) == reads


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        ({"seeds": 5}, "undecided: 5 seeds, 6 needed"),
        ({"seeds": 0}, "no data"),
        ({"seeds": 5, "diverged": 1}, SELECTION),
    ],
)
def test_too_few_models_come_before_settings_and_a_missing_rho(changes, reads):
    for rho in (0.9, NAN):
        assert verdict(PREDICT, rows=[prediction(rho, **changes)]) == reads


CEILING = "undecided: models do no better than character frequencies"


@pytest.mark.parametrize(
    ("costs", "unigram", "reads"),
    [
        # exact models lose 2 on average: 2.5 and 2.2 beside unigram - 1
        ({}, 3.51, "holds"),
        ({}, 3.49, CEILING),
        ({ALL: SMALL, "sigmoid fa center_scale all": LARGE}, 3.51, "fails"),
        ({ALL: SMALL, "sigmoid fa center_scale all": LARGE}, 3.49, CEILING),
        # models that the test does not name lose 11
        (dict.fromkeys(("softmax backprop center_scale all", IN_BLOCKS), [9.0] * 6), 3.51, "holds"),
        # one of six above, their mean 2.5 not
        ({ALL: [0.3] * 5 + [1.5]}, 3.51, "holds"),
        # what diverged leaves the mean of the others
        ({ALL: LOST, "sigmoid fa center_scale all": SEVEN}, 3.51, SELECTION),
        ({ALL: [2.0] * 6 + [None], "sigmoid fa center_scale all": SEVEN}, 3.51, CEILING),
        ({}, NAN, "holds"),
    ],
)
def test_costs_of_models_that_learned_no_more_than_frequencies_are_not_compared(
    costs, unigram, reads
):
    assert verdict(COSTS_MORE, costs=costs, unigram=unigram) == reads


@pytest.mark.parametrize(
    ("unigram", "reads"), [(2.51, "undecided: 1 seed, 6 needed"), (2.49, CEILING)]
)
def test_without_a_margin_character_frequencies_themselves_are_the_ceiling(unigram, reads):
    """One exact model, of loss 2, has no spread; with center_scale it loses 2.5."""
    tables: dict[str, Any] = {"layers": layers(now=1), "picked": picked(now=1)}
    found = evidence(models=short(COSTS, 1), unigram=unigram, **tables)
    assert column(NOW, found)[COSTS_MORE] == reads


@pytest.mark.parametrize(("place", "cost"), [("block", 0.1), ("final", 9.0)])
def test_a_cosine_that_is_not_close_to_1_cannot_mislead(place, cost):
    """The cosine of the other place is 0.96."""
    planted = {"protocol": C, "variant": "corrected", "place": place}, {"cos_center_scale": 0.8999}
    reads = verdict(HARM, planted, costs={ALL: [cost] * 6})
    assert reads == "undecided: a cosine is not above 0.9"


@pytest.mark.parametrize(("cost", "reads"), [(0.99, "holds"), (-5.0, "holds"), (1.01, "fails")])
def test_harm_begins_at_two_standard_deviations(cost, reads):
    assert verdict(HARM, costs={ALL: [cost] * 6}) == reads


@pytest.mark.parametrize(
    ("blocks", "reads"), [(-0.49, "holds"), (1.49, "holds"), (-0.51, "fails"), (1.51, "fails")]
)
def test_costs_are_alike_within_two_standard_deviations_either_way(blocks, reads):
    """Beside a cost of 0.5 in all norms."""
    assert verdict(ALIKE, costs={IN_BLOCKS: [blocks] * 6}) == reads


def test_costs_are_compared_seed_by_seed():
    """Means a tenth apart, spread over seeds by tens."""
    of_seeds = [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
    costs = {
        ALL: [v + 0.1 for v in of_seeds],
        "sigmoid fa center_scale all": of_seeds,
    }
    assert verdict(COSTS_MORE, costs=costs) == "holds"
    turned = costs | {"sigmoid fa center_scale all": of_seeds[::-1]}
    assert verdict(COSTS_MORE, costs=turned).startswith("undecided")


def test_shares_are_compared_seed_by_seed():
    of_seeds = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    planted = [
        (BLOCKS | {"attention": "softmax"}, {"r_radial": [v + 0.001 for v in of_seeds]}),
        (OTHER, {"r_radial": of_seeds}),
    ]
    assert verdict(RADIAL, *planted) == "holds"


def test_the_published_protocol_alone_says_nothing_of_the_corrected_one():
    tables: dict[str, Any] = {"layers": layers(), "picked": picked()}
    found = evidence(
        **{name: table[table["protocol"] == P] for name, table in tables.items()},
        models=models(COSTS, protocol=P),
        rows=[prediction(protocol=P)],
    )
    assert column(NOW, found) == ["no data"] * 8
    assert column(WAS, found) == column(WAS, evidence())


def test_a_margin_is_of_the_exact_models_with_softmax_under_feedback_alignment():
    """The others' losses are twice as far apart."""
    one, wide = picked(), picked(margin=2.0)
    named = {"protocol": C, "feedback": "fa", "attention": "softmax"}
    of = (one[list(named)] == list(named.values())).all(axis=1)
    others = [wide.assign(arm="rmsnorm"), wide.assign(norm_backward="projected")]
    assert "against 1.000." in words(HARM, picked=pd.concat([one[of], wide[~of], *others]))
    assert "against 2.000." in words(HARM, picked=pd.concat([wide[of], one[~of]]))
