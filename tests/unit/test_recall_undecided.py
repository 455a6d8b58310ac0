"""When a statement of the notebook is left open: seeds, divergence, arms that did not learn."""

import math

import pytest
from recall_evidence import (
    AFFINE,
    CASES,
    COLLAPSE,
    CORRECTED,
    ENTRIES,
    FAILS,
    FLAT,
    HOLDS,
    L2,
    L2_FAILS,
    LEARNERS,
    MEASURED,
    NAN,
    NEEDED,
    NEEDS,
    NOW,
    OPEN,
    OWN,
    PUBLISHED,
    RADIUS,
    RECALL_IS,
    SEEDED,
    SELECTION,
    SPREAD,
    Changes,
    found,
    lost,
    recall,
    runs,
    together,
    verdict,
)

from normscope.ledger.judgement import judge
from normscope.nn.arms import ARMS
from normscope.studies.recall.claims import claims


@pytest.mark.parametrize("arm", CORRECTED)
def test_a_missing_arm_is_no_data_in_any_order(arm):
    back = CORRECTED.index(arm) % 2
    arms = list(PUBLISHED)[::-1] if back else list(PUBLISHED)
    config = recall({a: PUBLISHED[a] for a in arms})
    table = runs(together(HOLDS, AFFINE)).sample(frac=1, random_state=back)
    is_arm = table["arm"] == arm
    unmeasured = table.assign(**{m: table[m].mask(is_arm) for m in MEASURED})
    for without in (table[~is_arm], unmeasured):
        got = claims(without, config, ENTRIES, 0.95)
        for claim, column in CASES:
            reads = getattr(got[claim], column)
            if claim == AFFINE and arm == "manual_l2":
                assert reads == f"depends: holds for {RADIUS}; no data for {L2}"
            elif arm in NEEDS[claim]:
                assert reads == "no data", (claim, column)
            elif claim != L2_FAILS:
                assert reads == "holds", (claim, column)
        if arm in NEEDS[AFFINE]:
            (judgement,) = judge([got[AFFINE]], 0.05)
            assert judgement.verdict == "undecided"
            assert judgement.why.startswith("no data (the pair with ")


@pytest.mark.parametrize("arm", ["manual_l2", "none"])
def test_a_missing_arm_is_no_data_whatever_the_others_learned(arm):
    low: Changes = {(other, "accuracy"): 0.1 for other in CORRECTED}
    table = runs(together(HOLDS, AFFINE) | low)
    got = claims(table[table["arm"] != arm], recall(), ENTRIES, 0.95)
    there = [case for case in CASES if arm in NEEDS[case[0]]]
    assert there
    for claim, column in there:
        if claim == AFFINE:
            assert got[claim].cases[L2].reading() == "no data"
        else:
            assert getattr(got[claim], column) == "no data", (claim, column)


@pytest.mark.parametrize("arm", ["manual_l2", "layernorm", "none"])
def test_an_arm_that_is_not_published_is_no_data(arm):
    config = recall({a: rate for a, rate in PUBLISHED.items() if a != arm})
    got = claims(runs(together(HOLDS, AFFINE)), config, ENTRIES, 0.95)
    for claim, column in CASES:
        is_asked = claim in (L2_FAILS, FLAT, NEEDED) or (claim, arm) == (COLLAPSE, "none")
        if is_asked and arm in NEEDS[claim]:
            assert getattr(got[claim], column) == "no data"
        elif claim in (RECALL_IS, COLLAPSE):
            assert getattr(got[claim], column) == "holds"  # of the arms that are


def test_without_an_arm_that_has_a_norm_there_is_nothing_to_collapse_from():
    got = claims(runs(HOLDS[COLLAPSE]), recall({"none": 5e-4}), ENTRIES, 0.95)[COLLAPSE]
    assert (got.own, got.verdict, got.cases) == ("no data", "no data", {})


@pytest.mark.parametrize("arm", CORRECTED)
@pytest.mark.parametrize(("claim", "column"), CASES)
def test_what_did_not_learn_is_not_asked_what_it_is_like(claim, column, arm):
    """What other arms learned does not matter."""
    if claim == L2_FAILS and arm not in ("layernorm", "none"):
        return  # its own measure is the accuracy of manual_l2
    undecided = f"undecided: {ARMS[arm].label} did not learn the task"
    low: Changes = {(arm, "accuracy"): 0.89}
    planted = together(HOLDS, claim)
    reads = verdict(planted | low, claim, column)
    assert reads == (undecided if arm in LEARNERS[claim] else "holds")


@pytest.mark.parametrize(("claim", "column"), CASES)
def test_from_nine_in_ten_a_task_is_learned(claim, column):
    learned: Changes = {(arm, "accuracy"): 0.9 for arm in CORRECTED}
    assert verdict(learned | together(HOLDS, claim), claim, column) == "holds"


@pytest.mark.parametrize(("n", "seeds"), [(1, "1 seed"), (3, "3 seeds"), (5, "5 seeds")])
@pytest.mark.parametrize("planted", [HOLDS, FAILS, SPREAD])
@pytest.mark.parametrize("claim", SEEDED)
def test_a_corrected_verdict_needs_six_seeds(claim, planted, n, seeds):
    """2^(1 - 6) is 0.031, below 5%; 2^(1 - 5) is 0.0625."""
    reads = verdict(together(planted, claim), claim, NOW, now=n)
    assert reads == f"undecided: {seeds}, 6 needed"


@pytest.mark.parametrize("claim", SEEDED)
def test_the_arm_with_the_fewest_seeds_counts(claim):
    """Every claim needs Unit L2 or the baseline without norm."""
    table = runs(together(HOLDS, claim))
    few = (table["task"] == "recall") & table["arm"].isin(["manual_l2", "none"])
    reads = claims(table[~few | (table["seed"] < 4)], recall(), ENTRIES, 0.95)[claim].verdict
    four = "undecided: 4 seeds, 6 needed"
    assert reads == (four if claim != AFFINE else f"depends: holds for {RADIUS}; {four} for {L2}")


@pytest.mark.parametrize("claim", SEEDED)
def test_seeds_on_both_sides_decide_nothing(claim):
    assert verdict(together(SPREAD, claim), claim, NOW) == OPEN


@pytest.mark.parametrize("arm", CORRECTED)
@pytest.mark.parametrize("claim", SEEDED)
def test_models_that_diverged_leave_a_selection_to_the_claims_about_them(claim, arm):
    """One of 7; the other six would be enough."""
    changes = together(HOLDS, claim) | lost(arm, [6])
    reads = found(changes, claim, was=7, now=7)
    asked = arm in {*NEEDS[claim], *LEARNERS[claim]}
    if claim == AFFINE:
        assert reads.own == "undecided: the two are confounded"
    else:
        assert reads.own == (SELECTION if asked else "holds")
    if claim == AFFINE and arm == "manual_l2":
        assert reads.cases[L2].reading() == SELECTION
    elif claim == L2_FAILS and arm == "manual_l2":
        assert reads.verdict == SELECTION
    else:
        assert reads.verdict == (SELECTION if asked else "holds")


def test_of_models_that_all_diverged_there_is_no_data():
    changes = together(HOLDS, NEEDED) | lost("none", range(7))
    assert [verdict(changes, NEEDED, c, was=7, now=7) for c in (OWN, NOW)] == ["no data"] * 2


def test_a_measure_that_is_not_asked_about_may_be_missing():
    changes = together(HOLDS, NEEDED) | {("layernorm", "sharpness"): NAN}
    assert [verdict(changes, NEEDED, column) for column in (OWN, NOW)] == ["holds"] * 2


@pytest.mark.parametrize("odd", [NAN, math.inf])
def test_a_seed_without_a_finite_measure_is_not_compared(odd):
    """As in the means of the cells; without it 6 of 7 seeds are left."""
    changes: Changes = {("none", "loss"): (2.0,) * 6 + (odd,)}
    got = found(changes, NEEDED, now=7)
    assert (got.cases[""].n, got.verdict) == (6, "holds")
    assert found(changes | {("layernorm", "loss"): (odd, *(1.0,) * 6)}, NEEDED, now=7).verdict == (
        "undecided: 5 seeds, 6 needed"
    )


def test_losses_are_compared_seed_by_seed():
    """Means a tenth apart, spread over seeds by tens."""
    by_seed = (0.0, 10.0, 20.0, 30.0, 40.0, 50.0)
    changes: Changes = {
        ("none", "loss"): tuple(v + 0.1 for v in by_seed),
        ("layernorm", "loss"): by_seed,
    }
    assert verdict(changes, NEEDED, NOW) == "holds"
    turned = changes | {("layernorm", "loss"): by_seed[::-1]}
    assert verdict(turned, NEEDED, NOW) == OPEN
    table = runs(changes)
    for shuffled in (table[::-1], table.sample(frac=1, random_state=0)):
        assert claims(shuffled, recall(), ENTRIES, 0.95)[NEEDED].verdict == "holds"


def test_models_of_other_seeds_are_not_compared():
    table = runs(HOLDS[NEEDED])
    table.loc[table["arm"] == "none", "seed"] += 100
    got = claims(table, recall(), ENTRIES, 0.95)[NEEDED]
    assert (got.own, got.verdict) == ("holds", "no data")
