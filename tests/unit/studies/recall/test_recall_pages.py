"""The decisive test in tables: what they show, what they refuse, and the numbers in them."""

import math
from typing import Any

import pandas as pd
import pytest
from normscope.studies.recall.measures import HEIGHTS, MEASURES
from page_recipes import config, shown

from normscope.nn.arms import ARMS, Arm
from normscope.nn.recipe import Norm
from normscope.paper.section import declared_numbers, named
from normscope.studies.recall.pages import best_table, cell_table, factor_table, section
from normscope.studies.recall.tables import TABLES
from normscope.studies.recall.tabulate import factor_effects, factor_levels, why_no_effects

NAN = math.nan
BEST = ["task", "arm", "rates", "best", "n", "loss", "accuracy", "at_edge"]
FACTORS = "response contrast kind n effect low high joint_low joint_high alpha".split()
FOUR = ("layernorm", "layernorm_gain", "layernorm_bias", "layernorm_plain")


def cell(arm: str, rate: float, task: str = "copy", n: int = 1, lost: int = 0, **means: float):
    """Rows of cells.csv; means that are not given are 1."""
    head = {"task": task, "arm": arm, "learning_rate": rate, "n": n, "diverged": lost}
    values = {m: means.get(m, 1.0) for m in (*MEASURES, *HEIGHTS)}
    return [head | {"measure": m, **dict.fromkeys(("mean", "low", "high"), v)}
            for m, v in values.items()]  # fmt: skip


def cells(*rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([row for part in rows for row in part])


def test_a_row_of_a_task_has_the_means_of_its_arm_and_rate():
    none: dict[str, Any] = dict.fromkeys((*MEASURES, *HEIGHTS), NAN)
    table = cells(
        cell("none", 0.0005, loss=0.0625, accuracy=0.5),
        cell("layernorm", 0.0001, n=3, lost=2, loss=1234.0),
        cell("none", 0.25, n=0, lost=3, **none),
        cell("dyt", 0.25, task="recall"),
    )
    first, second, third = shown(cell_table(table, "copy"))
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
        ["recall", "none", 2, 0.00025, 1, 12.0, 0.5, True],
        ["recall", "dyt", 2, NAN, NAN, NAN, NAN, NAN],
    ]
    assert best_table(pd.DataFrame(rows, columns=BEST)).texts() == [
        ["copy", "LayerNorm", "3", "0.01", "0.125", "0.750"],
        ["recall", "No norm", "2", "0.00025 (at the edge)", "12.0", "0.500"],
        ["recall", "DyT", "2", "diverged", "–", "–"],
    ]


def effect(contrast: str = "gain: yes − no", response: str = "ln loss", **changes: Any) -> dict:
    """An effect whose joint interval is above 0, of 10 seeds, of 5 contrasts."""
    row = {"response": response, "contrast": contrast, "kind": "main effect", "n": 10}
    bounds = {"effect": 0.5, "low": 0.25, "high": 0.75, "joint_low": 0.1, "joint_high": 0.9}
    return row | bounds | {"alpha": 0.01} | changes


SIGNED = "+0.500 [+0.250, +0.750]"
BELOW = {"effect": -0.5, "low": -0.75, "high": -0.25, "joint_low": -0.9, "joint_high": -0.1}


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        ({}, f"{SIGNED}*"),
        (BELOW, "−0.500 [−0.750, −0.250]*"),
        ({"joint_low": -0.1}, SIGNED),
        ({"joint_low": 0.0}, SIGNED),
        ({"n": 6}, f"{SIGNED}*"),
        ({"n": 5}, SIGNED),
        ({"n": 1, "low": NAN, "high": NAN, "joint_low": NAN, "joint_high": NAN}, "+0.500"),
    ],
)
def test_an_effect_has_a_star_where_it_stands(changes, reads):
    (row,) = shown(factor_table(pd.DataFrame([effect(**changes)])))
    assert row["ln loss"] == reads


def test_effects_are_a_row_a_contrast_and_a_column_a_response():
    rows = [effect(), effect("bias"), effect(response="accuracy", n=3)]
    table = factor_table(pd.DataFrame(rows))
    assert table.headings == ["contrast", "n", "ln loss", "accuracy"]
    assert table.texts() == [
        ["gain: yes − no", "10", f"{SIGNED}*", f"{SIGNED}, n = 3"],
        ["bias", "10", f"{SIGNED}*", "–"],
    ]


def handed_over(table: pd.DataFrame, **changes: pd.DataFrame):
    none = {"best": pd.DataFrame(columns=BEST), "factors": pd.DataFrame(columns=FACTORS)}
    whole = config()
    return section(whole.recall, {"cells": table} | none | changes, whole.settings)


def test_a_section_has_a_table_a_task_of_the_cells_and_what_the_words_ask_for():
    both = cells(cell("none", 0.001, loss=0.25), cell("none", 0.001, task="recall"))
    part = handed_over(both)
    assert list(part.tables) == ["task_copy", "task_recall", "best", "factors"]
    assert [(t["name"], t["steps"]) for t in part.words["tasks"]] == [
        ("copy", 4000),
        ("recall", 300),
    ]
    assert (part.words["rate"], part.words["seeds"], part.words["effects"]) == (0.003, 6, 0)
    numbers = named(declared_numbers(TABLES["cells"], both))
    assert str(numbers["copy none 0.001 loss"]) == "0.250"
    assert "task_recall" not in handed_over(both[both["task"] == "copy"]).tables
    stars = handed_over(both, factors=pd.DataFrame([effect(), effect(response="accuracy")]))
    assert stars.words["effects"] == 2
    assert stars.words["why_no_effects"] == ""
    assert part.words["why_no_effects"] == "the arms differ in no factor of a norm"


def arms_there(*arms: str, diverged: tuple[str, ...] = ()) -> pd.DataFrame:
    return pd.DataFrame({"arm": arms, "diverged": [int(arm in diverged) for arm in arms]})


def test_why_there_are_no_effects():
    assert "differ in no factor" in why_no_effects(arms_there("layernorm", "none", "dyt"))
    assert why_no_effects(arms_there(*FOUR[:3], "none")) == (
        "no arm has these levels of gain, bias: no, no. Add it to recall.runs"
    )
    lost = why_no_effects(arms_there(*FOUR, "none", diverged=("layernorm_bias", "none")))
    assert lost.endswith("runs diverged: layernorm_bias")
    others = why_no_effects(arms_there(*FOUR, "none", diverged=("none",)))
    assert others == "no seed has a run of every arm"


@pytest.fixture
def twin(monkeypatch) -> str:
    """An arm with LayerNorm's factors and another eps."""
    norm = Norm(statistic="token", center=True, gain=True, bias=True, eps=0.5)
    monkeypatch.setitem(ARMS, "layernorm_soft", Arm("LayerNorm, soft", "none", norm))
    return "layernorm_soft"


def test_of_arms_with_the_same_factors_the_first_of_the_registry_stands(twin):
    """A loss of e for gains and 1 for others, 1000 for the twin: the effect of a gain is 1."""
    for arms in ([twin, *FOUR], [*FOUR[::-1], twin]):
        assert list(factor_levels(arms)["arm"]) == list(FOUR)
    assert list(factor_levels([twin, "none"])["arm"]) == [twin]
    seed: dict[str, Any] = {"diverged_at": NAN, **dict.fromkeys(MEASURES, 1.0)}
    losses = {arm: math.e if ARMS[arm].norm.gain else 1.0 for arm in FOUR} | {twin: 1000.0}
    rows = [seed | {"arm": arm, "seed": s, "loss": x} for arm, x in losses.items() for s in (1, 2)]
    table = factor_effects(pd.DataFrame(rows), 0.95)
    table = table[table["response"] == "ln loss"].set_index("contrast")["effect"]
    assert table["gain: yes − no"] == pytest.approx(1)
    assert table["bias: yes − no"] == pytest.approx(0, abs=1e-12)
