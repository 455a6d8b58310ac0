"""The notebook's statements: planted models under which each holds, fails or stays undecided."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from statements import CONFIG, SELECTION, claim_on, judged

from normscope.studies.recall.tables import MEASURES
from normscope.studies.recall.tabulate import with_factors

PUBLISHED = {"layernorm": 1e-4, "batchnorm": 1e-4, "manual_l2": 1e-4, "none": 5e-4}
TUNED = (*PUBLISHED, "layernorm_plain", "manual_l2_scaled", "manual_l2_affine")
GOOD, BAD = 0.01, 0.003  # rates; at the second every loss is higher, and all else absurd
ALONE, RANK, LN = "accuracy_without_context", "effective_rank_query", "the pair with LayerNorm"
SEEDS = 7

Changes = Mapping[tuple[str, str], float]  # by arm and measure
HOLDS: dict[str, Changes] = {
    "copy_is_recall": {(arm, ALONE): 0.4 for arm in PUBLISHED},
    "unit_l2_cannot_learn": {("manual_l2", "accuracy"): 0.5},
    "affine_is_expressive": {("layernorm", "loss"): 0.1, ("layernorm_plain", "loss"): 0.5},
    "unit_l2_is_flat": {
        ("layernorm", "edge"): 0.3,
        ("batchnorm", "edge"): 0.9,
        ("manual_l2", "edge"): 0.5,
    },
    "none_collapses": {**{(arm, RANK): 3.0 for arm in PUBLISHED}, ("none", RANK): 1.2},
    "norms_are_needed": {("none", "loss"): 2.0},
}
FAILS: dict[str, Changes] = {
    "copy_is_recall": {("batchnorm", ALONE): 0.8},
    "unit_l2_cannot_learn": {("manual_l2", "accuracy"): 0.95},
    "affine_is_expressive": {("layernorm_plain", "loss"): 0.01},
    "unit_l2_is_flat": {("layernorm", "edge"): 0.2},
    "none_collapses": {("layernorm", RANK): 1.0},
    "norms_are_needed": {("none", "loss"): 0.5},
}
PRIMARY = {  # the case that decides, and its quantity
    "affine_is_expressive": ("recall, centered, radius sqrt(d)", -0.4),
    "unit_l2_is_flat": ("recall", 5 / 3),
    "none_collapses": (f"{LN}, recall", 0.4),
    "norms_are_needed": ("recall", 1),
}


def runs(changes: Changes) -> dict[str, pd.DataFrame]:
    """recall.runs of one seed as published and seven tuned ones; measures not given are 1."""
    cells = [("copy", arm, rate, 1) for arm, rate in PUBLISHED.items()]
    tasks = ("recall", "copy_small")
    cells += [(t, arm, rate, SEEDS) for t in tasks for arm in TUNED for rate in (BAD, GOOD)]
    rows = []
    for task, arm, rate, n in cells:
        row: dict[str, Any] = {"task": task, "arm": arm, "learning_rate": rate}
        row |= dict.fromkeys(MEASURES, 1.0) | {"diverged_at": math.nan}
        row |= {measure: value for (changed, measure), value in changes.items() if changed == arm}
        row |= dict.fromkeys(MEASURES, 77.0) if rate == BAD else {}
        rows += [row | {"seed": seed} for seed in range(n)]
    return {"recall.runs": with_factors(pd.DataFrame(rows))}


@pytest.mark.parametrize("key", HOLDS)
def test_a_statement_holds_and_fails_under_both_protocols(key):
    """If all of seven seeds agree."""
    holds = claim_on(key, runs(HOLDS[key]))
    fails = claim_on(key, runs({**HOLDS[key], **FAILS[key]}))
    assert (judged(holds).verdict, judged(fails).verdict) == ("holds", "fails")
    if key != "affine_is_expressive":  # its arm is not among the notebook's
        assert (holds.finding.its_verdict, fails.finding.its_verdict) == ("holds", "fails")


@pytest.mark.parametrize("key", PRIMARY)
def test_one_case_decides_and_its_effect_is_the_quantity(key):
    """At the rate that is best over the other seeds; p of seven equal values is that of flips."""
    claim = claim_on(key, runs(HOLDS[key]))
    name, effect = PRIMARY[key]
    case = claim.cases[name]
    assert case.effect == pytest.approx(effect)
    assert (case.n, case.p_holds) == (SEEDS, 1 / 2**SEEDS)


@pytest.mark.parametrize("learned", ["recall", "copy_small"])
def test_unit_l2_can_learn_only_if_it_learns_both_tasks(learned):
    table = runs({("manual_l2", "accuracy"): 0.5})["recall.runs"]
    chosen = (table["task"] == learned) & (table["arm"] == "manual_l2")
    table.loc[chosen & (table["learning_rate"] == GOOD), "accuracy"] = 0.95
    assert judged(claim_on("unit_l2_cannot_learn", {"recall.runs": table})).verdict == "holds"


@pytest.mark.parametrize(
    ("key", "changes", "reads"),
    [
        # differences from LayerNorm, at 1 and at 0.1, of a twentieth of a nat or less do not count
        ("norms_are_needed", {("none", "loss"): 1.04}, "fails"),
        ("norms_are_needed", {("none", "loss"): 1.06}, "holds"),
        ("affine_is_expressive", {("layernorm_plain", "loss"): 0.14}, "fails"),
        ("affine_is_expressive", {("layernorm_plain", "loss"): 0.16}, "holds"),
        # a factor of two from LayerNorm's 0.3, either way
        ("unit_l2_is_flat", {("manual_l2", "edge"): 0.16}, "holds"),
        ("unit_l2_is_flat", {("manual_l2", "edge"): 0.14}, "fails"),
        ("unit_l2_is_flat", {("manual_l2", "edge"): 0.59}, "holds"),
        ("unit_l2_is_flat", {("manual_l2", "edge"): 0.61}, "fails"),
        # one of the two arms that are compared must have learned the task
        ("affine_is_expressive", {("layernorm_plain", "accuracy"): 0.89}, "holds"),
        ("norms_are_needed", {("layernorm", "accuracy"): 0.89}, "holds"),
    ],
)
def test_margins_of_statements(key, changes, reads):
    assert judged(claim_on(key, runs({**HOLDS[key], **changes}))).verdict == reads


@pytest.mark.parametrize(
    ("key", "arms", "why"),
    [
        ("affine_is_expressive", ("layernorm_plain", "layernorm"), "neither learned the task"),
        ("norms_are_needed", ("layernorm", "none"), "neither learned the task"),
        ("unit_l2_is_flat", ("manual_l2",), "did not learn the task"),
        ("unit_l2_is_flat", ("layernorm",), "did not learn the task"),
        ("none_collapses", ("none",), "did not learn the task"),
    ],
)
def test_arms_that_did_not_learn_the_task_leave_a_statement_undecided(key, arms, why):
    changes = {**HOLDS[key], **{(arm, "accuracy"): 0.89 for arm in arms}}
    assert why in judged(claim_on(key, runs(changes))).why


@pytest.mark.parametrize("off", [-0.01, 0.01])
def test_copy_is_recall_if_all_arms_are_nearer_to_chance_than_to_1_without_context(off):
    recall = CONFIG.recall
    alone = (1 + recall.tasks[recall.published.task].chance) / 2 + off
    changes = {(arm, ALONE): 0.1 for arm in PUBLISHED} | {("batchnorm", ALONE): alone}
    claim = claim_on("copy_is_recall", runs(changes))
    reads = "holds" if off < 0 else "fails"
    assert (claim.finding.its_verdict, claim.verdict) == (reads, reads)
    assert claim.cases[""].effect == alone


def test_copy_is_recall_is_undecided_if_an_arm_is_missing_diverged_or_did_not_learn():
    table = runs({})["recall.runs"]
    was = (table["task"] == "copy") & (table["arm"] == "none")
    for changed, reads in (
        (table[~was], "no data"),
        (table.assign(diverged_at=table["diverged_at"].mask(was, 3)), SELECTION),
        (
            table.assign(accuracy=table["accuracy"].mask(was, 0.89)),
            "undecided: No norm did not learn the task",
        ),
    ):
        assert claim_on("copy_is_recall", {"recall.runs": changed}).verdict == reads
