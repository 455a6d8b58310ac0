"""The recall test in tables of the page: what they show."""

import math
from typing import Any

import pandas as pd
import pytest
from page_recipes import config, shown

from normscope.studies.recall.pages import best_table, cell_table, factor_table, section
from normscope.studies.recall.tables import MEASURES, TABLES

NAN = math.nan


def cell(arm: str, rate: float, task: str = "copy", n: int = 1, lost: int = 0, **means: float):
    """Rows of cells.csv; means that are not given are 1."""
    head = {"task": task, "arm": arm, "learning_rate": rate, "n": n, "diverged": lost}
    return [head | {"measure": m, "mean": means.get(m, 1.0 if n else NAN)} for m in MEASURES]


def test_a_row_of_a_task_has_the_means_of_its_arm_and_rate():
    rows = [
        *cell("none", 0.0005, loss=0.0625, accuracy=0.5),
        *cell("layernorm", 0.0001, n=3, lost=2, loss=1234.0),
        *cell("none", 0.25, n=0, lost=3),
        *cell("dyt", 0.25, task="recall"),
    ]
    first, second, third = shown(cell_table(pd.DataFrame(rows), "copy"))
    assert first == {
        **{"arm": "No norm", "learning rate": "0.0005", "n": "1", "loss": "0.0625"},
        **{"accuracy": "0.500", "temperature": "1.00", "calibrated loss": "1.00"},
        **{"accuracy without context": "1.000", "effective rank": "1.00", "sharpness": "1.00"},
        **{"of squares": "1.00", "share of Adam's limit": "1.00"},
    }
    assert (second["arm"], second["n"], second["loss"]) == ("LayerNorm", "3, 2 diverged", "1,234")
    assert (third["arm"], third["n"], third["loss"]) == ("No norm", "0, 3 diverged", "–")


def test_the_best_rate_says_where_it_is_at_the_edge_and_where_there_is_none():
    rows = [
        ["copy", "layernorm", 3, 0.01, 2, 0.125, 0.75, False],
        ["recall", "none", 3, 0.00025, 1, 12.0, 0.5, True],
        ["recall", "dyt", 2, NAN, NAN, NAN, NAN, NAN],
    ]
    assert best_table(pd.DataFrame(rows, columns=TABLES["best"].names)).texts() == [
        ["copy", "LayerNorm", "3", "0.01", "0.125", "0.750"],
        ["recall", "No norm", "3", "0.00025 (at the edge)", "12.0", "0.500"],
        ["recall", "DyT", "2", "diverged", "–", "–"],
    ]


def effect(contrast: str = "gain: yes − no", response: str = "ln loss", **changes: Any) -> dict:
    """An effect of 10 seeds whose joint interval is above 0."""
    bounds = {"effect": 0.5, "low": 0.25, "high": 0.75, "joint_low": 0.1, "joint_high": 0.9}
    return {"response": response, "contrast": contrast, "n": 10} | bounds | changes


SIGNED = "+0.500 [+0.250, +0.750]"
BELOW = {"effect": -0.5, "low": -0.75, "high": -0.25, "joint_low": -0.9, "joint_high": -0.1}


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        (BELOW, "−0.500 [−0.750, −0.250]*"),
        ({"joint_low": 0.0}, SIGNED),
        ({"n": 6}, f"{SIGNED}*"),
        ({"n": 5}, SIGNED),
        ({"n": 1, "low": NAN, "high": NAN, "joint_low": NAN, "joint_high": NAN}, "+0.500"),
    ],
)
def test_an_effect_has_a_star_if_its_joint_interval_excludes_0_with_enough_seeds(changes, reads):
    (row,) = shown(factor_table(pd.DataFrame([effect(**changes)])))
    assert row["ln loss"] == reads


def test_effects_have_one_row_per_contrast_and_one_column_per_response():
    table = factor_table(pd.DataFrame([effect(), effect("bias"), effect(response="accuracy", n=3)]))
    assert table.headings == ["contrast", "n", "ln loss", "accuracy"]
    assert table.texts() == [
        ["gain: yes − no", "10", f"{SIGNED}*", f"{SIGNED}, n = 3"],
        ["bias", "10", f"{SIGNED}*", "–"],
    ]


def test_a_section_has_one_table_per_task_and_says_why_there_are_no_effects():
    whole = config()
    none = {name: pd.DataFrame(columns=TABLES[name].names) for name in ("best", "factors")}
    cells = pd.DataFrame([*cell("none", 0.001), *cell("none", 0.001, task="recall")])
    part = section(whole.recall, none | {"cells": cells}, whole.settings)
    assert list(part.tables) == ["task_copy", "task_recall", "best", "factors"]
    assert [task["name"] for task in part.words["tasks"]] == ["copy", "recall"]
    assert (part.words["seeds"], part.words["effects"]) == (6, 0)
    assert part.words["why_no_effects"] == "the arms differ in no factor of a norm"
    tables = none | {"cells": cells, "factors": pd.DataFrame([effect()])}
    words = section(whole.recall, tables, whole.settings).words
    assert (words["effects"], words["why_no_effects"]) == (1, "")
