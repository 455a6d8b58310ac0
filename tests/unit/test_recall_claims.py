"""Verdicts on the notebook's statements: planted numbers under which each holds and fails."""

import pandas as pd
import pytest
from recall_evidence import (
    AFFINE,
    ALONE,
    BN,
    BOTH,
    CASES,
    COLLAPSE,
    ENTRIES,
    FAILS,
    FAILS_EVERYWHERE,
    FAILS_WHERE,
    FLAT,
    HOLDS,
    KEYS,
    L2,
    L2_FAILS,
    LN,
    NAN,
    NEEDED,
    NEEDS,
    NOW,
    OPEN,
    OWN,
    PUBLISHED,
    RADIUS,
    RANK,
    RECALL_IS,
    SEEDED,
    SPREAD,
    Changes,
    cells,
    found,
    judged,
    recall,
    row,
    runs,
    together,
    verdict,
)

from normscope.nn.arms import ARMS
from normscope.studies.recall.claims import claims
from normscope.words import significant


def test_the_statements_are_the_ledgers_in_its_order():
    got = claims(runs({}), recall(), ENTRIES, 0.95)
    assert tuple(c.key for c in got) == KEYS
    for claim, word in enumerate(("recall", "fails", "affine", "flat", "collapse", "needs")):
        assert word in got[claim].claim
        assert got[claim].entry is ENTRIES[KEYS[claim]]
    assert got[L2_FAILS].test == "its accuracy stays below 0.9 where LayerNorm's does not"
    assert "within a factor of 2, " in got[FLAT].test


@pytest.mark.parametrize(("claim", "column"), CASES)
def test_a_claim_holds_and_fails_as_planted(claim, column):
    assert verdict(together(HOLDS, claim), claim, column) == "holds"
    one = "fails" if column == OWN else FAILS_WHERE.get(claim, "fails")
    assert verdict(together(FAILS, claim), claim, column) == one
    assert verdict(together(FAILS_EVERYWHERE, claim), claim, column) == "fails"


@pytest.mark.parametrize("claim", SEEDED)
def test_one_arm_decides_against_a_claim_and_all_are_needed_for_it(claim):
    """For it p is 2/2^n; against it times the arms: 6 seeds are 4/64, 6/64, 7 are 6/128."""
    assert judged(together(HOLDS, claim), claim, 6) == "holds"
    for planted in (FAILS, FAILS_EVERYWHERE):
        at_six = "undecided" if claim in FAILS_WHERE else "fails"
        assert judged(together(planted, claim), claim, 6) == at_six
        assert judged(together(planted, claim), claim, 7) == "fails"
    assert judged(together(SPREAD, claim), claim, 6) == "undecided"


@pytest.mark.parametrize("claim", BOTH)
def test_under_the_notebooks_protocol_means_decide(claim):
    """Of one seed its value; of many their mean, whatever each of them is."""
    for was in (1, 2, 6):
        assert verdict(together(HOLDS, claim), claim, OWN, was=was) == "holds"
        assert verdict(together(FAILS, claim), claim, OWN, was=was) == "fails"
        assert verdict(together(SPREAD, claim), claim, OWN, was=was) == "holds"


@pytest.mark.parametrize("planted", [HOLDS, FAILS])
def test_one_arm_that_differs_in_two_ways_decides_nothing_of_the_affine_part(planted):
    reads = verdict(together(planted, AFFINE), AFFINE, OWN, was=6)
    assert reads == "undecided: the two are confounded"


def test_nearer_to_chance_than_to_1_is_asked_of_the_notebooks_task():
    """Halfway between chance, 1/20, and 1; one model that does without the context decides."""
    for alone, reads in ((0.52, "holds"), (0.53, "fails")):
        changes: Changes = {(arm, ALONE): 0.1 for arm in PUBLISHED}
        changes["batchnorm", ALONE] = alone
        got = found(changes, RECALL_IS, now=1)
        assert (got.own, got.verdict) == (reads, reads)
        assert got.cases[""].fact == (reads == "holds")
        assert got.cases[""].effect == alone


@pytest.mark.parametrize(("claim", "column"), CASES)
def test_seeds_on_one_side_decide(claim, column):
    """Every value off by 1%, up and down by turns."""

    def off(planted: Changes) -> Changes:
        means = [(key, v) for key, v in planted.items() if isinstance(v, float)]
        assert len(means) == len(planted)
        return {key: (0.99 * v, 1.01 * v) for key, v in means}

    for planted, reads in ((HOLDS, "holds"), (FAILS_EVERYWHERE, "fails")):
        assert verdict(off(together(planted, claim)), claim, column, was=6) == reads


@pytest.mark.parametrize("value", [0.0, -3.0])
@pytest.mark.parametrize("arms", [("manual_l2",), ("batchnorm",), tuple(NEEDS[FLAT])])
def test_a_sharpness_without_a_ratio_is_not_alike(arms, value):
    changes: Changes = HOLDS[FLAT] | {(arm, "sharpness"): value for arm in arms}
    now = FAILS_WHERE[FLAT] if arms == ("batchnorm",) else "fails"
    assert [verdict(changes, FLAT, column) for column in (OWN, NOW)] == ["fails", now]


def test_one_saddle_of_six_is_no_proof_of_another_curvature():
    """Its ratio counts as 0, whose logarithm outweighs all others; half of all flips are as far."""
    changes: Changes = HOLDS[FLAT] | {("manual_l2", "sharpness"): (5.0,) * 5 + (-3.0,)}
    assert verdict(changes, FLAT, NOW) == OPEN


@pytest.mark.parametrize(
    ("l2", "own", "now"),
    [
        (4.49, "fails", FAILS_WHERE[FLAT]),
        (4.5, "holds", f"depends: holds for {LN}; {OPEN} for {BN}"),
        (4.51, "holds", "holds"),
        (5.99, "holds", "holds"),
        (6.0, "holds", f"depends: {OPEN} for {LN}; holds for {BN}"),
        (6.01, "fails", f"depends: fails for {LN}; holds for {BN}"),
    ],
)
def test_a_factor_of_two_is_alike_both_ways(l2, own, now):
    """Beside sharpnesses of 3 and 9: from 9 / 2 to 2 x 3; at an end no seed is on a side."""
    changes = HOLDS[FLAT] | {("manual_l2", "sharpness"): l2}
    assert [verdict(changes, FLAT, column) for column in (OWN, NOW)] == [own, now]


def test_sharpnesses_far_off_on_either_side_are_not_taken_for_alike():
    """Ratios of 1/3 and 3, whose geometric mean is 1."""
    changes: Changes = {(arm, "sharpness"): 3.0 for arm in NEEDS[FLAT]}
    changes["manual_l2", "sharpness"] = (1.0, 9.0)
    assert verdict(changes, FLAT, NOW) == OPEN


@pytest.mark.parametrize(
    ("radius", "now"),
    [
        (0.05, "fails"),
        (0.3, f"depends: holds for {RADIUS}; fails for {L2}"),
        (5.0, f"depends: holds for {RADIUS}; fails for {L2}"),
    ],
)
def test_an_affine_part_that_hurts_is_no_engine(radius, now):
    """Whatever the radius does."""
    changes: Changes = {
        ("manual_l2", "calibrated_loss"): 0.1,
        ("manual_l2_affine", "calibrated_loss"): 0.2,
        ("layernorm_plain", "calibrated_loss"): radius,
    }
    assert verdict(changes, AFFINE, NOW) == now
    assert judged(changes, AFFINE, 7) == "fails"


@pytest.mark.parametrize(
    ("key", "changes", "planted", "claim", "reads"),
    [
        ("unit_l2_cannot_learn", {"bound": 0.45}, HOLDS, L2_FAILS, ("fails", "fails")),
        ("unit_l2_is_flat", {"margin": 1.9}, FAILS, FLAT, ("fails", FAILS_WHERE[FLAT])),
        ("unit_l2_is_flat", {"margin": 2.3}, FAILS, FLAT, ("holds", "holds")),
        ("norms_are_needed", {"bound": 1.5}, HOLDS, NEEDED, ("holds", "fails")),
    ],
)
def test_thresholds_are_those_of_the_ledger(key, changes, planted, claim, reads):
    """The published protocol compares two losses, and knows no bound."""
    entries = {**ENTRIES, key: ENTRIES[key].model_copy(update=changes)}
    got = claims(runs(planted[claim]), recall(), entries, 0.95)[claim]
    assert (got.own, got.verdict) == reads


# of n equal values: their effect, beside the bound that it is compared with
EFFECTS: list[tuple[int, str, float, float]] = [
    (L2_FAILS, "", 0.5, 0.9),
    (AFFINE, RADIUS, -0.4, 0),
    (AFFINE, L2, -1.9, 0),
    (FLAT, LN, 5 / 3, 1),
    (FLAT, BN, 5 / 9, 1),
    (COLLAPSE, LN, -1, 0),
    (COLLAPSE, L2, -1, 0),
    (NEEDED, "", 1, 0),
]


@pytest.mark.parametrize(("claim", "name", "effect", "bound"), EFFECTS)
def test_a_case_has_its_effect_n_and_exact_p(claim, name, effect, bound):
    case = found(together(HOLDS, claim), claim).cases[name]
    assert (case.n, case.unit) == (6, "model")
    assert (case.effect, case.low, case.high) == pytest.approx((effect,) * 3)
    assert (effect < bound) == (claim != NEEDED) or claim == FLAT
    assert case.p_holds == case.smallest == 1 / 64


def test_the_numbers_behind_a_verdict_are_in_words():
    got = found({**HOLDS[COLLAPSE], ("none", RANK): (2.0, 3.0)}, COLLAPSE, was=2)
    for words in (got.published, got.corrected):
        assert "No norm 2.50" in words
        assert "LayerNorm 3.00" in words


def test_means_in_words_are_those_of_the_cells():
    changes: Changes = {("layernorm", "loss"): (1.25, 3.5, 0.5), ("none", "loss"): (0.125, NAN)}
    table = cells(changes, was=3)
    means = table[table["measure"] == "loss"].set_index(["task", "arm"])["mean"]
    assert means["copy", "layernorm"] == pytest.approx(1.75)
    words = found(changes, NEEDED, was=3)
    assert words.published.startswith("loss LayerNorm 1.75, BatchNorm 1.00, Unit L2 1.00, No norm ")
    for task, text in (("copy", words.published), ("recall", words.corrected)):
        for arm in ("layernorm", "none"):
            assert f"{ARMS[arm].label} {significant(means[task, arm])}" in text


def test_the_baseline_is_shown_at_layernorms_rate_where_it_was_trained():
    table = runs({})
    matched = row(("copy", "none", PUBLISHED["layernorm"]), 0, {("none", "loss"): 7.25})
    both = pd.concat([table, pd.DataFrame([matched])], ignore_index=True)
    words = "without norm at LayerNorm's rate: {}."
    assert words.format("7.25") in claims(both, recall(), ENTRIES, 0.95)[NEEDED].published
    assert words.format("–") in claims(table, recall(), ENTRIES, 0.95)[NEEDED].published


def test_the_level_of_intervals_is_the_configurations():
    """Of 7 normal scores; BCa's bounds at 60% lie within those at 99%."""
    losses = tuple(2 + v for v in (-1.35, -0.76, -0.35, 0.0, 0.35, 0.76, 1.35))
    table = runs({("none", "loss"): losses, ("layernorm", "loss"): 1.0}, now=7)
    wide, narrow = (
        claims(table, recall(), ENTRIES, level)[NEEDED].cases[""] for level in (0.99, 0.6)
    )
    assert wide.low < narrow.low < narrow.effect < narrow.high < wide.high
