"""The notebook's statements: planted models under which each holds or fails, with exact p."""

import itertools
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from statements import CONFIG, FEW, SELECTION, UNCLEAR, found, judged, verdict

from normscope.studies.recall.measures import HEIGHTS, MEASURES

PUBLISHED = {"layernorm": 1e-4, "batchnorm": 1e-4, "manual_l2": 1e-4, "none": 5e-4}
CORRECTED = (*PUBLISHED, "layernorm_plain", "manual_l2_affine")
ALONE, RANK = "accuracy_without_context", "effective_rank_query"
LN, BN, L2 = "the pair with LayerNorm", "the pair with BatchNorm", "the pair with Unit L2"
RADIUS = "the pair with LayerNorm, no affine"

# the same for every seed, or a value a seed, over and over
Changes = Mapping[tuple[str, str], float | tuple[float, ...]]
HOLDS: dict[str, Changes] = {
    "copy_is_recall": {(arm, ALONE): 0.4 for arm in PUBLISHED},
    "unit_l2_cannot_learn": {("manual_l2", "accuracy"): 0.5},
    "affine_is_expressive": {
        ("manual_l2", "calibrated_loss"): 2.0,
        ("manual_l2_affine", "calibrated_loss"): 0.1,
        ("layernorm_plain", "calibrated_loss"): 0.5,
    },
    "unit_l2_is_flat": {
        ("layernorm", "sharpness"): 3.0,
        ("batchnorm", "sharpness"): 9.0,
        ("manual_l2", "sharpness"): 5.0,
    },
    "none_collapses": {**{(arm, RANK): 3.0 for arm in PUBLISHED}, ("none", RANK): 2.0},
    "norms_are_needed": {("none", "loss"): 2.0, ("layernorm", "loss"): 1.0},
}
# in one case, where there are several
FAILS: dict[str, Changes] = {
    "copy_is_recall": {("batchnorm", ALONE): 0.8},
    "unit_l2_cannot_learn": {("manual_l2", "accuracy"): 0.95},
    "affine_is_expressive": {("layernorm_plain", "calibrated_loss"): 0.05},
    "unit_l2_is_flat": {("batchnorm", "sharpness"): 11.0},
    "none_collapses": {("manual_l2", RANK): 1.0},
    "norms_are_needed": {("none", "loss"): 0.5},
}
SEEDED = [key for key in HOLDS if key != "copy_is_recall"]
LEARNERS = {  # who must have learned the task
    "unit_l2_cannot_learn": {"layernorm"},
    "affine_is_expressive": {"layernorm_plain"},
    "unit_l2_is_flat": {"manual_l2", "layernorm", "batchnorm"},
    "none_collapses": set(PUBLISHED),
    "norms_are_needed": {"layernorm"},
}


def runs(changes: Changes, was: int = 1, now: int = 6) -> dict[str, pd.DataFrame]:
    """recall.runs of some published and some corrected seeds; all else is 1."""
    cells = [*(("copy", arm, rate, was) for arm, rate in PUBLISHED.items())]
    cells += [("recall", arm, 0.001, now) for arm in CORRECTED]
    rows = []
    for task, arm, rate, n in cells:
        for seed in range(n):
            row: dict[str, Any] = {"task": task, "arm": arm, "learning_rate": rate, "seed": seed}
            row |= dict.fromkeys((*MEASURES, *HEIGHTS), 1.0) | {"diverged_at": float("nan")}
            for (of, measure), v in changes.items():
                if of == arm:
                    row[measure] = v[seed % len(v)] if isinstance(v, tuple) else v
            rows.append(row)
    return {"recall.runs": pd.DataFrame(rows)}


@pytest.mark.parametrize("key", HOLDS)
def test_a_statement_holds_and_fails_under_both_protocols(key):
    """Of seven seeds on one side: 2/128, two-sided; one of three cases is enough to fail."""
    holds = found(key, runs(HOLDS[key], now=7))
    fails = found(key, runs({**HOLDS[key], **FAILS[key]}, now=7))
    assert (judged(holds).verdict, judged(fails).verdict) == ("holds", "fails")
    if key != "affine_is_expressive":  # its arm is none of the notebook's
        assert (holds.finding.own, fails.finding.own) == ("holds", "fails")
    for case in holds.cases.values():
        if key in SEEDED:
            assert (case.n, case.p_holds, case.smallest) == (7, 1 / 128, 1 / 128)


# of equal values: their effect
EFFECTS = [
    ("unit_l2_cannot_learn", "", 0.5),
    ("affine_is_expressive", RADIUS, -0.4),
    ("affine_is_expressive", L2, -1.9),
    ("unit_l2_is_flat", LN, 5 / 3),
    ("unit_l2_is_flat", BN, 5 / 9),
    ("none_collapses", LN, -1),
    ("none_collapses", L2, -1),
    ("norms_are_needed", "", 1),
]


@pytest.mark.parametrize(("key", "name", "effect"), EFFECTS)
def test_the_effect_is_the_quantity(key, name, effect):
    assert found(key, runs(HOLDS[key])).cases[name].effect == pytest.approx(effect)


@pytest.mark.parametrize(("off", "reads"), [(-0.01, "holds"), (0.01, "fails")])
def test_nearer_to_chance_than_to_1_is_asked_of_the_notebooks_task(off, reads):
    """On either side of halfway; one arm that does without the context decides."""
    recall = CONFIG.recall
    alone = (1 + recall.tasks[recall.published.task].chance) / 2 + off
    changes = {(arm, ALONE): 0.1 for arm in PUBLISHED} | {("batchnorm", ALONE): alone}
    claim = found("copy_is_recall", runs(changes, now=1))
    assert (claim.finding.own, claim.verdict) == (reads, reads)
    assert claim.cases[""].effect == alone


@pytest.mark.parametrize(
    ("l2", "own", "now"),
    [
        (4.49, "fails", f"depends: holds for {LN}; fails for {BN}"),
        (4.5, "holds", f"depends: holds for {LN}; {UNCLEAR} for {BN}"),
        (5.99, "holds", "holds"),
        (6.01, "fails", f"depends: fails for {LN}; holds for {BN}"),
        (0.0, "fails", "fails"),
        (-3.0, "fails", "fails"),
    ],
)
def test_a_factor_of_two_is_alike_both_ways(l2, own, now):
    """Beside sharpnesses of 3 and 9: from 9 / 2 to 2 x 3; a saddle has no ratio."""
    changes = {**HOLDS["unit_l2_is_flat"], ("manual_l2", "sharpness"): l2}
    claim = found("unit_l2_is_flat", runs(changes))
    assert (claim.finding.own, claim.verdict) == (own, now)


def test_one_saddle_of_six_is_no_proof_of_another_curvature():
    """Its ratio counts as 0, whose logarithm outweighs all others; half of all flips are as far."""
    changes = {**HOLDS["unit_l2_is_flat"], ("manual_l2", "sharpness"): (5.0,) * 5 + (-3.0,)}
    assert verdict("unit_l2_is_flat", runs(changes)) == UNCLEAR


@pytest.mark.parametrize(("key", "arm"), [*itertools.product(LEARNERS, CORRECTED)])
def test_what_did_not_learn_is_not_asked_what_it_is_like(key, arm):
    """0.9 is learned, 0.89 is not; what other arms learned does not matter."""
    if (key, arm) == ("unit_l2_cannot_learn", "manual_l2"):
        return  # its own measure
    for accuracy, learned in ((0.9, True), (0.89, False)):
        reads = verdict(key, runs({(arm, "accuracy"): accuracy, **HOLDS[key]}))
        is_open = not learned and arm in LEARNERS[key]
        assert ("did not learn the task" in reads) == is_open
        assert (reads == "holds") == (not is_open)


@pytest.mark.parametrize("key", SEEDED)
def test_five_seeds_and_a_divergence_leave_a_statement_open(key):
    assert verdict(key, runs(HOLDS[key], now=5)) == FEW
    table = runs(HOLDS[key], now=7)["recall.runs"]
    lost = (table["task"] == "recall") & (table["seed"] == 6)
    table.loc[lost, "diverged_at"] = 3
    assert verdict(key, {"recall.runs": table}) == SELECTION


@pytest.mark.parametrize("arm", CORRECTED)
def test_a_missing_arm_is_no_data_for_what_is_about_it(arm):
    table = runs({})["recall.runs"]
    without = {"recall.runs": table[table["arm"] != arm]}
    named = {
        "unit_l2_cannot_learn": {"manual_l2", "layernorm"},
        "norms_are_needed": {"none", "layernorm"},
        "unit_l2_is_flat": {"manual_l2", "layernorm", "batchnorm"},
    }
    for key, arms in named.items():
        assert (verdict(key, without) == "no data") == (arm in arms)
