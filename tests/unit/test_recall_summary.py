"""The decisive test in tables: what they show, what they refuse, and the numbers in them."""

import math
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from recall_evidence import CORRECTED, PUBLISHED, cells, recall
from test_config import problem as config_problem
from test_recall_grid import grid, problem

from normscope.measure.calibration import BOUND, FLOOR, calibrated_loss, fit_temperature
from normscope.nn.arms import ARMS, Arm
from normscope.nn.recipe import Model, Norm
from normscope.paper.words import significant
from normscope.studies.recall.measures import HEIGHTS, MEASURES
from normscope.studies.recall.pages import best_table, cell_table, factor_table, section
from normscope.studies.recall.tables import factor_effects, factor_levels, why_no_effects
from normscope.train.recipe import Training

NAN = math.nan
TEMPLATE = (Path(__file__).parents[2] / "workflow" / "report" / "summary.md").read_text()
BEST = ["task", "arm", "rates", "best", "n", "loss", "accuracy", "at_edge"]
FACTORS = "response contrast kind n effect low high joint_low joint_high alpha".split()
NO_BEST, NO_FACTORS = pd.DataFrame(columns=BEST), pd.DataFrame(columns=FACTORS)


def test_a_row_of_a_task_has_the_means_of_its_arm_and_rate():
    table = pd.concat(
        [cells({("none", "loss"): 0.0625, ("none", "accuracy"): 0.5}), later_rate("copy", "none")],
        ignore_index=True,
    )
    found = cell_table(table, "copy")
    assert list(zip(found["arm"], found["learning rate"], strict=True)) == [
        ("LayerNorm", "0.0001"),
        ("BatchNorm", "0.0001"),
        ("Unit L2", "0.0001"),
        ("No norm", "0.0005"),
        ("No norm", "0.25"),
    ]
    assert found["loss"].tolist() == ["1.00"] * 3 + ["0.0625", "1,234"]
    assert found["accuracy"].tolist() == ["1.000"] * 3 + ["0.500", "1234.000"]
    assert found["n"].tolist() == ["1"] * 4 + ["4"]


def later_rate(task: str, arm: str) -> pd.DataFrame:
    keys = {"task": task, "arm": arm, "learning_rate": 0.25, "n": 4, "diverged": 0}
    means = dict.fromkeys(("mean", "low", "high"), 1234.0)
    return pd.DataFrame([keys | {"measure": m} | means for m in (*MEASURES, *HEIGHTS)])


def test_diverged_models_are_counted_beside_the_others():
    lost = {("none", m): NAN for m in (*MEASURES, *HEIGHTS)}
    table = cells({**lost, ("none", "diverged_at"): 2.0}, was=3)
    table.loc[(table["task"] == "copy") & (table["arm"] == "layernorm"), "diverged"] = 2
    found = cell_table(table, "copy").set_index("arm")
    assert found.loc["LayerNorm", "n"] == "3, 2 diverged"
    assert found.loc["BatchNorm", "n"] == "3"
    assert found.loc["No norm", "n"] == "0, 3 diverged"
    assert set(found.loc["No norm"].drop(["n", "learning rate"])) == {"–"}


def test_the_best_rate_says_where_it_is_at_the_edge_and_where_there_is_none():
    rows = [
        ["copy", "layernorm", 3, 0.01, 2, 0.125, 0.75, False],
        ["recall", "none", 2, 0.00025, 1, 12.0, 0.5, True],
        ["recall", "dyt", 2, NAN, NAN, NAN, NAN, NAN],
    ]
    found = best_table(pd.DataFrame(rows, columns=BEST))
    assert found.to_numpy().tolist() == [
        ["copy", "LayerNorm", 3, "0.01", "0.125", "0.750"],
        ["recall", "No norm", 2, "0.00025 (edge)", "12.0", "0.500"],
        ["recall", "DyT", 2, "diverged", "–", "–"],
    ]


def effect(contrast: str = "gain: yes − no", response: str = "ln loss", **changes) -> dict:
    """An effect whose joint interval is above 0, of 10 seeds, of 5 contrasts."""
    row = {"response": response, "contrast": contrast, "kind": "main effect", "n": 10}
    bounds = {"effect": 0.5, "low": 0.25, "high": 0.75, "joint_low": 0.1, "joint_high": 0.9}
    return row | bounds | {"alpha": 0.01} | changes


def cell_of(**changes) -> str:
    return factor_table(pd.DataFrame([effect(**changes)]))["ln loss"].item()


SIGNED = "+0.500 [+0.250, +0.750]"
BELOW = {"effect": -0.5, "low": -0.75, "high": -0.25, "joint_low": -0.9, "joint_high": -0.1}


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        ({}, f"{SIGNED}*"),
        (BELOW, "−0.500 [−0.750, −0.250]*"),
        ({"joint_low": -0.1}, SIGNED),
        ({"joint_low": 0.0}, SIGNED),
        # 1 in 100 needs 2^(1 - n) <= 0.01: eight seeds
        ({"n": 8}, f"{SIGNED}*"),
        ({"n": 7}, SIGNED),
        ({"n": 1, "low": NAN, "high": NAN, "joint_low": NAN, "joint_high": NAN}, "+0.500"),
    ],
)
def test_an_effect_has_a_star_where_it_stands(changes, reads):
    assert cell_of(**changes) == reads


def test_effects_are_a_row_a_contrast_and_a_column_a_response():
    rows = [
        effect("gain: yes − no"),
        effect("bias: yes − no", effect=-0.5, joint_low=-1.0),
        effect("gain: yes − no", "accuracy", n=3),
        effect("bias: yes − no", "accuracy", n=10),
    ]
    found = factor_table(pd.DataFrame(rows))
    assert list(found.columns) == ["contrast", "n", "ln loss", "accuracy"]
    assert found.to_numpy().tolist() == [
        ["gain: yes − no", "10", f"{SIGNED}*", f"{SIGNED}, n = 3"],
        ["bias: yes − no", "10", "−0.500 [+0.250, +0.750]", f"{SIGNED}*"],
    ]


def decisive_part() -> str:
    _, _, after = TEMPLATE.partition("## The decisive test")
    part, _, _ = after.partition("## The backward pass")
    assert len(part) > 1000
    return part


def test_the_section_has_the_names_of_the_template_and_no_other():
    """But the statements, which are the ledger's; its tables have the names of figures."""
    names = {name for _, name, _, _ in Formatter().parse(decisive_part()) if name}
    texts, tables = section(recall(), cells({}), NO_BEST, NO_FACTORS)
    assert set(texts) == names
    assert not set(texts) & {*Model.model_fields, *Training.model_fields}
    assert "[[table claims_notebook]]" in decisive_part()
    assert set(tables) == {"recall_copy", "recall_recall", "best", "factors"}
    assert decisive_part().format(**texts)


def rendered(table: pd.DataFrame, **changes: pd.DataFrame) -> dict[str, object]:
    """The section's words, with its tables in Markdown."""
    of = {"best": NO_BEST, "factors": NO_FACTORS} | changes
    return section(recall(), table, **of).rendered()


def test_the_section_has_a_table_for_every_task_of_the_cells():
    both = str(rendered(cells({}))["tasks"])
    assert "### Task copy, 5 steps" in both
    assert "### Task recall, 5 steps" in both
    for arm in CORRECTED:
        assert both.count(f"| {ARMS[arm].label} |") == (arm in PUBLISHED) + 1
    table = cells({})
    one = str(rendered(table[table["task"] == "recall"])["tasks"])
    assert "### Task recall" in one
    assert "### Task copy" not in one


def test_the_section_has_the_sizes_of_both_tasks():
    found = section(grid(), cells({}), NO_BEST, NO_FACTORS).texts
    assert (found["corrected_task"], found["recall_rate"]) == ("hard_2", "0.01")
    found = rendered(cells({}))
    assert (found["copy_entities"], found["copy_attributes"]) == (4, 5)
    assert (found["entities"], found["attributes"]) == (4, 4)
    assert found["recall_rate"] == "0.001"
    assert found["verdict_seeds"] == 6


def test_without_two_rates_there_is_no_best():
    texts, tables = section(recall(), cells({}), NO_BEST, NO_FACTORS)
    assert texts["best"] == "No arm has two learning rates here."
    assert tables["best"].empty


def test_the_best_rates_are_a_table_of_the_section():
    best = pd.DataFrame([["copy", "none", 3, 0.01, 2, 0.125, 0.75, True]], columns=BEST)
    shown = str(rendered(cells({}), best=best)["best"])
    assert shown.splitlines()[2] == "| copy | No norm | 3 | 0.01 (edge) | 0.125 | 0.750 |"


def test_the_effects_are_shown_with_the_seeds_that_a_star_needs():
    table = pd.DataFrame([effect(), effect(response="accuracy")])
    text = str(rendered(cells({}), factors=table)["factors"])
    assert "of 2 effects" in text
    assert "here 8." in text
    assert rf"| gain: yes − no | 10 | {SIGNED}\* | {SIGNED}\* |" in text  # no emphasis


def test_without_effects_the_section_says_why():
    text = str(rendered(cells({}))["factors"])
    assert text.startswith("No effects: no arm has these levels of center, radius, gain, bias: ")
    assert "no, sqrt(d), no, no;" in text  # rmsnorm_plain
    assert "no, 1, no, no" not in text  # manual_l2 is there


def arms_there(*arms: str, diverged: tuple[str, ...] = ()) -> pd.DataFrame:
    return pd.DataFrame({"arm": arms, "diverged": [int(arm in diverged) for arm in arms]})


FOUR = ("layernorm", "layernorm_gain", "layernorm_bias", "layernorm_plain")


def test_why_there_are_no_effects():
    assert "differ in no factor" in why_no_effects(arms_there("layernorm", "none", "dyt"))
    assert "differ in no factor" in why_no_effects(arms_there("none"))
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
    assert norm != ARMS["layernorm"].norm
    monkeypatch.setitem(ARMS, "layernorm_soft", Arm("LayerNorm, soft", "none", norm))
    return "layernorm_soft"


def test_of_arms_with_the_same_factors_the_first_of_the_registry_stands(twin):
    for arms in ([twin, *FOUR], [*FOUR[::-1], twin]):
        assert list(factor_levels(arms)["arm"]) == list(FOUR)
    assert list(factor_levels([twin, "none"])["arm"]) == [twin]


def test_an_arm_with_the_same_factors_is_in_no_effect(twin):
    """A loss of e for gains and 1 for others, 1000 for the twin: the effect of a gain is 1."""
    seed: dict[str, Any] = {"diverged_at": NAN, **dict.fromkeys(MEASURES, 1.0)}
    losses = {arm: math.e if ARMS[arm].norm.gain else 1.0 for arm in FOUR} | {twin: 1000.0}
    rows = [seed | {"arm": arm, "seed": s, "loss": x} for arm, x in losses.items() for s in (1, 2)]
    found = factor_effects(pd.DataFrame(rows), 0.95)
    found = found[found["response"] == "ln loss"].set_index("contrast")["effect"]
    assert found["gain: yes − no"] == pytest.approx(1)
    assert found["bias: yes − no"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("value", "reads"),
    [
        (NAN, "–"),
        (0.0, "< 0.000001"),
        (9.9e-7, "< 0.000001"),
        (1e-6, "0.00000100"),
        (0.000123456, "0.000123"),
        (0.0625, "0.0625"),
        (1.0, "1.00"),
        (3.14159, "3.14"),
        (-2.5, "−2.50"),
        (42.25, "42.2"),
        (999.4, "999"),
        (1234.5678, "1,235"),
        (-9876543.0, "−9,876,543"),
    ],
)
def test_three_digits_over_all_magnitudes(value, reads):
    assert significant(value) == reads


@pytest.mark.parametrize("margin", [0.01, 1.0, 5.0, 700.0])
@pytest.mark.parametrize("n", [1, 50])
def test_of_separated_logits_the_temperature_is_the_largest_that_leaves_a_millionth(margin, n):
    """Two classes a margin m apart lose ln(1 + exp(-m / T)): FLOOR at T = m / -ln(e^FLOOR - 1)."""
    answers = torch.arange(n) % 2
    logits = torch.stack([1 - answers, answers], 1) * margin + 3.0
    fitted = fit_temperature(logits, answers)
    assert fitted == pytest.approx(margin / -math.log(math.expm1(1e-6)), rel=1e-3)
    assert calibrated_loss(logits, answers, fitted) == pytest.approx(FLOOR, rel=2e-2)


def test_of_separated_logits_with_several_margins_the_mean_loss_is_a_millionth():
    rng = np.random.default_rng(0)
    margins = torch.from_numpy(rng.uniform(0.5, 20, 30))
    logits = torch.stack([margins, torch.zeros(30, dtype=torch.float64)], 1)
    answers = torch.zeros(30, dtype=torch.int64)
    fitted = fit_temperature(logits, answers)
    assert torch.log1p(torch.exp(-margins / fitted)).mean() == pytest.approx(1e-6, rel=2e-2)
    assert torch.log1p(torch.exp(-margins / (1.1 * fitted))).mean() > 1.5e-6


def test_a_temperature_that_would_be_below_the_bound_is_the_bound():
    """The margin of 1e-3 would need T = 7e-5."""
    logits, answers = torch.tensor([[1e-3, 0.0]]), torch.tensor([0])
    assert fit_temperature(logits, answers) == pytest.approx(1 / BOUND, rel=1e-3)


def test_a_temperature_that_would_be_above_the_bound_is_the_bound():
    """The margin of 1e6 would have T = 7e4."""
    logits, answers = torch.tensor([[1e6, 0.0]]), torch.tensor([0])
    assert fit_temperature(logits, answers) == pytest.approx(BOUND, rel=1e-3)


RATES = ["published.arms.0.learning_rate", "corrected.learning_rate", "runs.0.learning_rates.0"]


@pytest.mark.parametrize("key", RATES)
@pytest.mark.parametrize(
    ("rate", "kept"), [(0.00012345678949, "0.000123456789"), (1 / 3, "0.333333333")]
)
def test_a_rate_that_tables_do_not_keep_is_refused_with_the_one_that_they_keep(key, rate, kept):
    message = problem(**{key: rate})
    assert message.startswith(f"{key}: tables keep 9 digits")
    assert f"{rate!r} is {kept}: give that" in message
    grid(**{"runs.1.learning_rates.0": float(kept)})


@pytest.mark.parametrize(
    ("task", "kind", "reads"),
    [
        ("copy", "recall", "published.task: copy is not of kind copy"),
        ("hard_2", "copy", "corrected.task: hard_2 is not of kind recall"),
    ],
)
def test_a_task_of_the_other_kind_is_named(task, kind, reads):
    assert problem(**{f"tasks.{task}.kind": kind}).endswith(reads)


@pytest.mark.parametrize("key", ["training.learning_rate", "recall.corrected.learning_rate"])
@pytest.mark.parametrize(
    ("text", "plain"), [("1e-4", "0.0001"), ("12e-10", "0.0000000012"), ("1E3", "1000")]
)
def test_a_number_that_yaml_reads_as_text_comes_with_the_way_out(key, text, plain):
    message = config_problem(**{key: text})
    assert message.startswith(f"{key}: ")
    assert f"got '{text}' (str); YAML reads it as text: write {plain}" in message
    assert "YAML" not in config_problem(**{key: "fast"})
