"""The notebook's statements: planted models under which each holds, fails or stays undecided."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from readings import finding, judgement_on
from statements import CLAIMS, CONFIG, SELECTION

from normscope.studies.recall.tables import MEASURES
from normscope.studies.recall.tabulate import with_factors

PUBLISHED = {"layernorm": 1e-4, "batchnorm": 1e-4, "manual_l2": 1e-4, "none": 5e-4}
TUNED = (*PUBLISHED, "layernorm_plain", "manual_l2_affine")
GOOD, BAD = 0.01, 0.003  # rates; at the second every loss is higher, and all else absurd
ALONE, TASKS = "accuracy_without_context", ("recall", "recall_large", "copy_small")
RANKS = ("effective_rank_query", "effective_rank_all")
FLAT = ("rise", "preconditioned_sharpness", "edge")
SEEDS = 12

Changes = Mapping[tuple[str, str], float]  # by arm and measure


def each(arm: str, measures: tuple[str, ...], value: float) -> Changes:
    return {(arm, measure): value for measure in measures}


LEARNED = {("manual_l2", "accuracy"): 0.95}
HOLDS: dict[str, Changes] = {
    "unit_l2_cannot_learn": {("manual_l2", "accuracy"): 0.5, ("manual_l2", "loss"): 2.0},
    "affine_is_expressive": {
        ("layernorm", "loss"): 0.1,
        ("layernorm_plain", "loss"): 0.5,
        ("manual_l2_affine", "loss"): 0.1,
        ("manual_l2", "loss"): 0.5,
    },
    "unit_l2_is_flat": {
        **each("layernorm", FLAT, 0.3),
        **each("batchnorm", FLAT, 0.4),
        **each("manual_l2", FLAT, 0.5),
    },
    "unit_l2_is_isotropic": {
        **each("layernorm", RANKS, 0.3),
        **each("batchnorm", RANKS, 0.4),
        **each("manual_l2", RANKS, 0.5),
    },
    "none_collapses": each("none", RANKS, 0.4),
    "norms_are_needed": {("none", "loss"): 2.0},
}
FAILS: dict[str, Changes] = {
    "unit_l2_cannot_learn": {**LEARNED, ("manual_l2", "loss"): 1.0},
    "affine_is_expressive": {("layernorm_plain", "loss"): 0.01, ("manual_l2", "loss"): 0.01},
    "unit_l2_is_flat": each("layernorm", FLAT, 0.2),
    "unit_l2_is_isotropic": each("batchnorm", RANKS, 0.2),
    "none_collapses": {(arm, rank): 0.3 for arm in PUBLISHED if arm != "none" for rank in RANKS},
    "norms_are_needed": {("none", "loss"): 0.5},
}
READINGS = [
    (key, name)
    for key in HOLDS
    for name, reading in CLAIMS.entries[key].readings.items()
    if reading.contrast is not None and reading.contrast.table == "recall.runs"
]


def runs(changes: Changes) -> dict[str, pd.DataFrame]:
    """recall.runs of twelve seeds, as published and tuned; measures not given are 1."""
    copied = PUBLISHED | {"manual_l2_affine": 1e-4}
    cells = [("copy", arm, rate) for arm, rate in copied.items()]
    cells += [(t, arm, rate) for t in TASKS for arm in TUNED for rate in (BAD, GOOD)]
    rows = []
    for task, arm, rate in cells:
        row: dict[str, Any] = {"task": task, "arm": arm, "learning_rate": rate}
        row |= dict.fromkeys(MEASURES, 1.0) | {"diverged_at": math.nan}
        row |= {measure: value for (changed, measure), value in changes.items() if changed == arm}
        row |= dict.fromkeys(MEASURES, 77.0) if rate == BAD else {}
        rows += [row | {"seed": seed} for seed in range(SEEDS)]
    return {"recall.runs": with_factors(pd.DataFrame(rows))}


def verdict(key: str, changes: Changes, *readings: str) -> str:
    return judgement_on(key, runs(changes), *readings).verdict


@pytest.mark.parametrize(("key", "reading"), READINGS)
def test_every_reading_holds_and_fails(key, reading):
    """If all of twelve seeds agree. The published protocol, where it is shown, says the same."""
    for changes, reads in ((HOLDS[key], "holds"), ({**HOLDS[key], **FAILS[key]}, "fails")):
        assert verdict(key, changes, reading) == reads
        found = finding(key, reading, runs(changes))
        assert found.its_verdict in ("", reads)
        for case in found.cases.values():
            assert case.n == SEEDS


@pytest.mark.parametrize("key", HOLDS)
def test_a_statement_depends_on_its_readings_if_they_disagree(key):
    """The notebook's task is planted as it would have to be, and the tuned ones are not."""
    if key == "norms_are_needed":  # a question, which is not about that task
        return
    table = runs(HOLDS[key])["recall.runs"]
    other = runs({**HOLDS[key], **FAILS[key]})["recall.runs"]
    mixed = pd.concat([table[table["task"] == "copy"], other[other["task"] != "copy"]])
    assert judgement_on(key, {"recall.runs": mixed}).verdict == "depends"


@pytest.mark.parametrize(
    ("key", "reading", "cases"),
    [
        ("unit_l2_cannot_learn", "best_rates", ["recall", "recall_large"]),
        ("unit_l2_cannot_learn", "answers", ["recall", "copy_small"]),
        ("affine_is_expressive", "unit_radius", ["recall", "recall_large"]),
        ("affine_is_expressive", "complete_norm", ["recall", "recall_large"]),
        (
            "none_collapses",
            "notebook",
            [f"the pair with {norm}" for norm in ("LayerNorm", "BatchNorm", "Unit L2")],
        ),
        ("none_collapses", "normalizing_alone", list(TASKS)),
    ],
)
def test_the_cases_of_a_reading(key, reading, cases):
    assert list(finding(key, reading, runs(HOLDS[key])).cases) == cases


def test_a_norm_that_is_no_higher_than_none_is_a_counterexample_of_its_reading_alone():
    """Unit L2's effective rank is below that of models without a norm, LayerNorm's is above."""
    changes = {**HOLDS["none_collapses"], **each("manual_l2", RANKS, 0.3)}
    reads = {n: verdict("none_collapses", changes, n) for n in ("complete_norms", "notebook")}
    assert reads == {"complete_norms": "holds", "notebook": "fails"}
    assert verdict("none_collapses", changes, "normalizing_alone") == "fails"
    assert verdict("none_collapses", changes) == "depends"


@pytest.mark.parametrize("learned", ["recall", "copy_small"])
def test_unit_l2_can_learn_only_if_it_learns_both_tasks(learned):
    table = runs({("manual_l2", "accuracy"): 0.5})["recall.runs"]
    chosen = (table["task"] == learned) & (table["arm"] == "manual_l2")
    table.loc[chosen & (table["learning_rate"] == GOOD), "accuracy"] = 0.95
    tables = {"recall.runs": table}
    assert judgement_on("unit_l2_cannot_learn", tables, "answers").verdict == "holds"


@pytest.mark.parametrize(
    ("key", "reading", "changes", "reads"),
    [
        # differences from LayerNorm, at 1 and at 0.1, of a twentieth of a nat or less do not count
        ("norms_are_needed", "recall", {("none", "loss"): 1.04}, "fails"),
        ("norms_are_needed", "recall", {("none", "loss"): 1.06}, "holds"),
        ("unit_l2_cannot_learn", "notebook", {("manual_l2", "loss"): 1.04}, "fails"),
        ("unit_l2_cannot_learn", "best_rates", {("manual_l2", "loss"): 1.06}, "holds"),
        ("affine_is_expressive", "complete_norm", {("layernorm_plain", "loss"): 0.14}, "fails"),
        ("affine_is_expressive", "complete_norm", {("layernorm_plain", "loss"): 0.16}, "holds"),
        # a factor of two from LayerNorm's 0.3 and BatchNorm's 0.4, either way
        ("unit_l2_is_flat", "slices", {("manual_l2", "rise"): 0.21}, "holds"),
        ("unit_l2_is_flat", "slices", {("manual_l2", "rise"): 0.19}, "fails"),
        ("unit_l2_is_flat", "slices", {("manual_l2", "rise"): 0.61}, "fails"),
        ("unit_l2_is_flat", "stability_limit", {("manual_l2", "edge"): 0.16}, "holds"),
        ("unit_l2_is_flat", "stability_limit", {("manual_l2", "edge"): 0.14}, "fails"),
        # one of the two arms that are compared must have learned the task
        ("affine_is_expressive", "complete_norm", {("layernorm_plain", "accuracy"): 0.8}, "holds"),
        ("norms_are_needed", "recall", {("layernorm", "accuracy"): 0.89}, "holds"),
        ("unit_l2_cannot_learn", "best_rates", {("layernorm", "accuracy"): 0.8}, "undecided"),
    ],
)
def test_margins_and_needs_of_readings(key, reading, changes, reads):
    assert verdict(key, {**HOLDS[key], **changes}, reading) == reads


@pytest.mark.parametrize(
    ("key", "reading", "arms", "why"),
    [
        ("affine_is_expressive", "complete_norm", ("layernorm_plain", "layernorm"), "neither"),
        ("affine_is_expressive", "unit_radius", ("manual_l2", "manual_l2_affine"), "neither"),
        ("norms_are_needed", "recall", ("layernorm", "none"), "neither learned the task"),
        ("unit_l2_is_flat", "slices", ("manual_l2",), "did not learn the task"),
        ("unit_l2_is_flat", "curvature", ("layernorm",), "did not learn the task"),
        ("unit_l2_is_isotropic", "best_rates", ("manual_l2",), "did not learn the task"),
        ("none_collapses", "notebook", ("none",), "did not learn the task"),
    ],
)
def test_arms_that_did_not_learn_the_task_leave_a_reading_undecided(key, reading, arms, why):
    changes = {**HOLDS[key], **{(arm, "accuracy"): 0.89 for arm in arms}}
    assert why in judgement_on(key, runs(changes), reading).why


def test_language_models_without_a_norm_are_compared_where_each_has_its_rate():
    sides = [("none", "none", 1.2), ("layernorm", "pre", 1.0), ("layernorm", "post", 9.0)]
    rows = [
        {"protocol": protocol, "arm": arm, "placement": placement, "seed": seed}
        | {"capped_loss": loss + more * (arm == "none"), "diverged_at": math.nan}
        # the pilot tried no model without a norm at nanoGPT's sizes
        for protocol, more in (("small", 0.0), ("nanogpt", 1.0))
        for arm, placement, loss in sides
        for seed in range(SEEDS)
    ]
    found = finding("norms_are_needed", "language_models", {"main.chosen": pd.DataFrame(rows)})
    assert [case.effect for case in found.cases.values()] == pytest.approx([0.2])
    assert found.answer == "holds"


@pytest.mark.parametrize("off", [-0.01, 0.01])
def test_copy_is_recall_if_all_arms_are_nearer_to_chance_than_to_1_without_context(off):
    recall = CONFIG.recall
    alone = (1 + recall.tasks[recall.published.task].chance) / 2 + off
    changes = {(arm, ALONE): 0.1 for arm in PUBLISHED} | {("batchnorm", ALONE): alone}
    found = finding("copy_is_recall", "notebook", runs(changes))
    reads = "holds" if off < 0 else "fails"
    assert (found.its_verdict, found.answer) == (reads, reads)
    assert found.cases[""].effect == pytest.approx(alone)


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
        assert finding("copy_is_recall", "notebook", {"recall.runs": changed}).answer == reads
