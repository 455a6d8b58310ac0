"""The notebook's statements: planted models under which each holds, fails or stays undecided."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest
from readings import finding
from statements import CONFIG, SELECTION

from normscope.studies.recall.tables import MEASURES
from normscope.studies.recall.tabulate import with_factors

PUBLISHED = {"layernorm": 1e-4, "batchnorm": 1e-4, "manual_l2": 1e-4, "none": 5e-4}
TUNED = (*PUBLISHED, "layernorm_plain", "manual_l2_affine")
GOOD, BAD = 0.01, 0.003  # rates; at the second every loss is higher, and all else absurd
ALONE, TASKS = "accuracy_without_context", ("recall", "recall_large", "copy_small")
SEEDS = 12

Changes = Mapping[tuple[str, str], float]  # by arm and measure


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
