"""Verdicts on the script's statements: planted numbers under which each holds, fails, is open."""

import functools
import itertools
import math
import pickle
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pytest
from test_jacobian_grid import grid
from test_jacobian_tables import LAYERS, cell, frame, layer

from normscope.jacobian import claims as judged
from normscope.jacobian.claims import Evidence
from normscope.jacobian.measures import MEASURES
from normscope.jacobian.tables import ANY, KEPT, PREDICTORS, REPLACED, VARIED

NAN = math.nan
P, C = "published", "small_2"  # the protocols of the grid
GRID = grid(**{"protocols.small_2.model.n_embd": 16})
NAMES = ("blocks.0.attention.before", "blocks.0.mlp.before", "final_norm")
PREDICTIONS = [*REPLACED, "predictor", "n", "seeds", "diverged", "rho"]
PICKED = [*VARIED, "seed", "learning_rate", "val_loss", "diverged"]  # rows of chosen
WAS, NOW = "its verdict", "verdict"

COSTS_MORE, RADIAL, PREDICT, HARM, ALIKE, FORMULA, AGREE, GRADIENT = range(8)
CLAIMS = range(8)
LOSSES_ONLY = [COSTS_MORE, PREDICT, HARM, ALIKE]  # the script shows no loss
PUBLISHED_TOO = [RADIAL, FORMULA, AGREE, GRADIENT]
OF_SEEDS = [COSTS_MORE, RADIAL, PREDICT, HARM, ALIKE, GRADIENT]
DECIDED = {*CLAIMS} - {PREDICT}  # a correlation over settings decides nothing

Values = float | list[float]
Planted = Sequence[tuple[dict[str, str], dict[str, Values]]]
Costs = Mapping[str, Sequence[float | None]]

# cos = sqrt((1 - 0.1 - r)/0.9): 0.8 and 0.9 as published, 0.96 and 0.98 corrected
SHARES: Planted = (
    ({}, {"r_mean": 0.1, "error_identity": 1e-16}),
    ({"variant": "published", "attention": "softmax"}, {"r_radial": 0.324}),
    ({"variant": "published", "attention": "sigmoid"}, {"r_radial": 0.171}),
    ({"variant": "published", "attention": "softmax"}, {"cos_center_scale": 0.8}),
    ({"variant": "published", "attention": "sigmoid"}, {"cos_center_scale": 0.9}),
    ({"variant": "corrected", "attention": "softmax"}, {"r_radial": 0.07056}),
    ({"variant": "corrected", "attention": "sigmoid"}, {"r_radial": 0.03564}),
    ({"variant": "corrected", "attention": "softmax"}, {"cos_center_scale": 0.96}),
    ({"variant": "corrected", "attention": "sigmoid"}, {"cos_center_scale": 0.98}),
    ({"variant": "corrected"}, {"error_closed_form": 1e-12, "error_without_gain": 1e-12}),
    ({"feedback": "fa", "variant": "corrected"}, {"alignment": 0.99}),
)
SMALL, LARGE = [0.2] * 6, [0.5] * 6
ALL, IN_BLOCKS = "softmax fa center_scale all", "softmax fa center_scale blocks"
COSTS: Costs = {
    ALL: LARGE,
    IN_BLOCKS: LARGE,
    "sigmoid fa center_scale all": SMALL,
}
MARGIN = 1.0  # of all exact models
UNIGRAM = 99.0  # far above all losses


def layers(*planted: Any, now: int = 6, arm: str = "layernorm") -> pd.DataFrame:
    """layers.csv of one published seed and some corrected ones; later plants lie over earlier."""
    rows = []
    of = itertools.product(
        ((P, 1), (C, now)), ("softmax", "sigmoid"), ("fa", "backprop"), ("corrected", "published")
    )
    for (protocol, n), attention, feedback, variant in of:
        for seed, (index, name) in itertools.product(range(n), enumerate(NAMES)):
            keys = {"protocol": protocol, "attention": attention, "feedback": feedback}
            row = layer(seed, name, {}, arm=arm, variant=variant, index=index, **keys)
            for where, values in (*SHARES, *planted):
                if all(row[k] == v for k, v in where.items()):
                    row |= {k: v[seed] if isinstance(v, list) else v for k, v in values.items()}
            rows.append(row)
    words = [column for column, value in rows[0].items() if isinstance(value, str)]
    # together by type, rows are selected in half the time
    return frame(rows, LAYERS).astype(dict.fromkeys(words, object)).copy()


def exact_loss(seed: int, n: int, margin: float = MARGIN) -> float:
    """Of n losses 2 +- a, as many above as below: 2 sd, a^2 n / (n - 1) the square, is a margin."""
    return 2 + margin / 2 * math.sqrt((n - 1) / n) * (1 if seed % 2 else -1)


def models(costs: Costs, margin: float = MARGIN, protocol: str = C) -> pd.DataFrame:
    """expected.csv by seed; no cost means a divergence; 2 sd of the exact losses are the margin."""
    rows = []
    for name, of_seeds in costs.items():
        attention, feedback, rule, place = name.split()
        for seed, cost in enumerate(of_seeds):
            row = cell(protocol=protocol, attention=attention, feedback=feedback)
            row |= {"norm_backward": rule, "surrogates_in": place, "seed": seed}
            exact = exact_loss(seed, len(of_seeds), margin)
            loss = NAN if cost is None else exact + cost
            values = {"val_loss": loss, "val_loss_exact": exact, "cost": loss - exact}
            rows.append(row | values | {"diverged": cost is None})
    return pd.DataFrame(rows, columns=[*KEPT, *PREDICTORS])


def picked(now: int = 6, lost: Sequence[dict[str, str]] = (), margin: float = MARGIN):
    """chosen.csv of the exact models of ``layers``; the last seed of what is lost diverged."""
    rows = []
    of = itertools.product(((P, 1), (C, now)), ("softmax", "sigmoid"), ("fa", "backprop"))
    for (protocol, n), attention, feedback in of:
        for seed in range(n):
            row = cell(protocol=protocol, attention=attention, feedback=feedback)
            gone = seed == n - 1 and any(where.items() <= row.items() for where in lost)
            loss = NAN if gone else exact_loss(seed, n, margin)
            rows.append(row | {"seed": seed, "val_loss": loss, "diverged": gone})
    return pd.DataFrame(rows, columns=PICKED)


def prediction(rho: float = 0.9, n: int = 6, **changes: Any) -> dict[str, Any]:
    row = dict(zip(REPLACED, (C, "center_scale", "all"), strict=True))
    row |= {"predictor": "left_in_blocks", "n": n, "rho": rho}
    return row | {"seeds": 6, "diverged": 0} | changes


def evidence(
    *planted: Any, costs: Costs | None = None, rows: Sequence[Any] | None = None, **changes: Any
) -> Evidence:
    """Tables under which all claims hold that can, but for what is planted."""
    values: dict[str, Any] = {
        "grid": GRID,
        "layers": layers(*planted),
        "picked": picked(),
        "models": models({**COSTS, **(costs or {})}),
        "predictions": pd.DataFrame([prediction()] if rows is None else rows, columns=PREDICTIONS),
        "unigram": UNIGRAM,
        "level": 0.95,
    }
    return Evidence(**values | changes)


@functools.cache
def told(of: bytes) -> pd.DataFrame:
    return judged.claims(pickle.loads(of))


def claims(of: Evidence) -> pd.DataFrame:
    """The same tables are judged once."""
    return told(pickle.dumps(of))


def reading(reads: str, of: Evidence, column: str = NOW) -> set[int]:
    """The claims with a verdict."""
    return {claim for claim in CLAIMS if claims(of)[column].iloc[claim] == reads}


def verdict(claim: int, *planted: Any, column: str = NOW, **changes: Any) -> str:
    return claims(evidence(*planted, **changes))[column].iloc[claim]


def words(claim: int, *planted: Any, column: str = "corrected", **changes: Any) -> str:
    return claims(evidence(*planted, **changes))[column].iloc[claim]


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


BLOCKS = {"protocol": C, "variant": "corrected", "feedback": "fa", "place": "block"}
OTHER = {**BLOCKS, "attention": "sigmoid"}
WAS_BLOCKS = {"protocol": P, "variant": "published", "feedback": "fa"}
# any layer counts
ONE = {"layer": NAMES[1], "attention": "sigmoid", "feedback": "backprop", "variant": "corrected"}
FAILS: dict[int, Any] = {  # what the layers show
    RADIAL: (OTHER, {"r_radial": 0.09, "cos_center_scale": math.sqrt(0.9)}),
    FORMULA: ({"protocol": C, **ONE}, {"error_without_gain": 2e-9}),
    AGREE: ({"protocol": C, **ONE}, {"cos_center_scale": 0.9811}),
    GRADIENT: (BLOCKS, {"alignment": 0.85}),
}


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


def short(costs: Costs, n: int) -> pd.DataFrame:
    return models({name: of_seeds[:n] for name, of_seeds in costs.items()})


@pytest.mark.parametrize(("n", "seeds"), [(2, "2 seeds"), (5, "5 seeds")])
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
        assert claims(found)[NOW].iloc[OF_SEEDS].str.match("undecided: |no data").all()


# means on the side where the claim holds, two of six seeds far on the other
WIDE = [3.0, 3.0, 3.0, 3.0, -2.0, -2.0]


def test_an_interval_that_covers_0_decides_nothing():
    planted = [
        (OTHER, {"r_radial": [0.01, 0.01, 0.01, 0.01, 0.6, 0.6]}),
        (BLOCKS, {"alignment": [0.99, 0.99, 0.99, 0.99, 0.8, 0.8]}),
    ]
    covers = "undecided: the interval covers 0"
    assert reading(covers, evidence(*planted, costs={ALL: WIDE})) >= {COSTS_MORE, RADIAL, GRADIENT}
    assert verdict(HARM, costs={ALL: [-v for v in WIDE]}) == covers


def test_costs_that_differ_either_way_are_not_taken_for_distances():
    """Each of 1.2 is beyond the margin, their mean is not."""
    reads = verdict(ALIKE, costs={ALL: [1.7, -0.7] * 3})
    assert reads == "undecided: the interval covers an end of the margin"


SELECTION = "undecided: runs diverged, and the others are a selection"
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
        ({ALL: [0.3] * 5 + [1.5]}, 3.51, "undecided: the interval covers 0"),
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
    assert claims(found)[NOW].iloc[COSTS_MORE] == reads


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
    assert list(claims(found)[NOW]) == ["no data"] * 8
    assert list(claims(found)[WAS]) == list(claims(evidence())[WAS])


def test_a_margin_is_of_the_exact_models_with_softmax_under_feedback_alignment():
    """The others' losses are twice as far apart."""
    one, wide = picked(), picked(margin=2.0)
    named = {"protocol": C, "feedback": "fa", "attention": "softmax"}
    of = (one[list(named)] == list(named.values())).all(axis=1)
    others = [wide.assign(arm="rmsnorm"), wide.assign(norm_backward="projected")]
    assert "against 1.000." in words(HARM, picked=pd.concat([one[of], wide[~of], *others]))
    assert "against 2.000." in words(HARM, picked=pd.concat([wide[of], one[~of]]))


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
    found = claims(evidence(*APART)).iloc[claim]
    for number in NUMBERS[claim]:
        assert number in found["corrected"]
    for number in WAS_NUMBERS.get(claim, []):
        assert number in found["as published"]


def test_the_true_gradients_cosine_is_not_that_of_another_signal():
    table = layers()
    noise = table.assign(signal="backprop", **dict.fromkeys(MEASURES, 0.5))
    noise[["error_closed_form", "error_identity", "error_without_gain"]] = 0.0
    both = pd.concat([table, noise[noise["variant"] == "corrected"]])
    pd.testing.assert_frame_equal(claims(evidence()), claims(evidence(layers=both)))


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


def without_layernorm() -> dict[str, Any]:
    """The section keeps the rows of one arm."""
    return {
        "layers": layers()[:0],
        "picked": picked()[:0],
        "models": models(COSTS)[:0],
        "predictions": pd.DataFrame([], columns=PREDICTIONS),
    }


def from_files() -> dict[str, Any]:
    """As pandas reads a header without a row: no column has a type."""
    return {
        "layers": pd.DataFrame([], columns=LAYERS),
        "picked": pd.DataFrame([], columns=PICKED),
        "models": pd.DataFrame([], columns=[*KEPT, *PREDICTORS]),
        "predictions": pd.DataFrame([], columns=PREDICTIONS),
    }


def all_diverged() -> dict[str, Any]:
    lost = models({name: [None] * 6 for name in COSTS}).assign(val_loss_exact=NAN)
    table = layers()
    table = table[table["variant"] == "corrected"].assign(**dict.fromkeys(MEASURES, NAN))
    rows = [prediction(NAN, 0, predictor=k, seeds=0, diverged=6) for k in PREDICTORS]
    return {
        "layers": table,
        "picked": picked().assign(val_loss=NAN, diverged=True),
        "models": lost,
        "predictions": pd.DataFrame(rows, columns=PREDICTIONS),
    }


def no_surrogate() -> dict[str, Any]:
    return from_files() | {"layers": layers(), "picked": picked()}


def no_norm_layer() -> dict[str, Any]:
    return from_files() | {"picked": picked(), "models": models(COSTS)}


EMPTY = [without_layernorm, from_files, all_diverged, no_surrogate, no_norm_layer]


@pytest.mark.parametrize("tables", EMPTY)
def test_what_is_missing_leaves_a_table_of_words(tables):
    found = claims(evidence(**tables()))
    assert len(found) == 8
    for claim, column in itertools.product(CLAIMS, ("as published", "corrected")):
        text = found[column].iloc[claim]
        assert not re.search(r"\b(nan|inf|None)\b", text), text
    for column in (WAS, NOW):
        of = found[column]
        assert of.str.match(r"holds|fails|no data|undecided: \S").all()


@pytest.mark.parametrize("tables", [without_layernorm, from_files])
def test_without_layernorm_there_is_no_data(tables):
    found = claims(evidence(**tables()))
    assert list(found[WAS]) == list(found[NOW]) == ["no data"] * 8


def test_where_all_diverged_nothing_is_concluded():
    found = claims(evidence(**all_diverged()))
    assert list(found[WAS]) == ["no data"] * 8
    reads = dict.fromkeys(CLAIMS, SELECTION) | dict.fromkeys((FORMULA, AGREE), "no data")
    assert dict(enumerate(found[NOW])) == reads


@pytest.mark.parametrize("claim", [COSTS_MORE, PREDICT, HARM, ALIKE])
def test_without_a_surrogate_trained_there_is_no_data_of_costs(claim):
    assert claims(evidence(**no_surrogate()))[NOW].iloc[claim] == "no data"


@pytest.mark.parametrize("gone", ["softmax", "sigmoid"])
def test_one_kind_of_attention_compares_nothing(gone):
    table, of_models = layers(), models(COSTS)
    table = table[table["attention"] != gone]
    found = claims(evidence(layers=table, models=of_models[of_models["attention"] != gone]))
    assert [found[NOW].iloc[c] for c in (COSTS_MORE, RADIAL)] == ["no data"] * 2
    assert found[WAS].iloc[RADIAL] == "no data"


def test_direct_feedback_is_not_feedback_alignment():
    table, of_models = layers(), models(COSTS)
    extra = table.assign(feedback="dfa", r_radial=0.0, alignment=0.0)
    costly = of_models.assign(feedback="dfa", cost=99.0)
    found = evidence(layers=pd.concat([table, extra]), models=pd.concat([of_models, costly]))
    reads = claims(found)[NOW].drop(AGREE)  # which every layer has to show
    pd.testing.assert_series_equal(reads, claims(evidence())[NOW].drop(AGREE))
