"""The summary: what each table says, and what it refuses to say."""

import copy
import json
import math
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from normscope.nn.arms import ARMS
from normscope.nn.recipe import Model
from normscope.studies.main.pages import (
    gain_table,
    is_covered,
    loss_table,
    name,
    notes,
    published_table,
    seeds_needed,
    verdict,
)
from normscope.train.recipe import Training

NAN = math.nan
ENDS = ("", "_low", "_high")
DATA = Path(__file__).parents[2] / "data"
NANOGPT = json.loads((DATA / "nanogpt_cpu.json").read_text())


def row(**changes) -> dict:
    """A baseline of three models; changes make it another arm."""
    return {
        "arm": "layernorm",
        "placement": "pre",
        "n": 6,
        "mean": 1.9,
        "low": 1.85,
        "high": 1.95,
        "pairs": 6,
        "diverged": 0,
        "alpha": 0.05,
        "difference": NAN,
        "difference_low": NAN,
        "difference_high": NAN,
    } | changes


def against(difference: float, low: float, high: float, **changes) -> dict:
    bounds = {"difference": difference, "difference_low": low, "difference_high": high}
    return row(**bounds, **changes)


CASES = [
    (row(), "baseline"),
    (row(n=1, low=NAN, high=NAN, pairs=1), "baseline"),
    (row(n=0, mean=NAN, pairs=0), "diverged"),
    (row(pairs=0), "no seed shared with the baseline"),
    (against(-0.5, NAN, NAN, n=1, pairs=1), "1 seed: no claim"),
    (against(0.5, 0.01, 0.99), "worse"),
    (against(-0.5, -0.99, -0.01), "better"),
    (against(0.5, -0.01, 1.01), "not told apart"),
    (against(-0.5, -1.01, 0.01), "not told apart"),
    (against(0.5, 0.0, 1.0), "not told apart"),
    (against(-0.5, -1.0, 0.0), "not told apart"),
    # of five sign flips the least two-sided p is 2/32, above 0.05; of six it is 2/64
    (against(0.5, 0.01, 0.99, n=5, pairs=5), "5 seeds: no claim"),
    # 39 comparisons leave 0.00128 to each, which ten flips (2/1024) miss and eleven (2/2048) reach
    (against(0.5, 0.01, 0.99, n=10, pairs=10, alpha=0.05 / 39), "10 seeds: no claim"),
    (against(0.5, 0.01, 0.99, n=11, pairs=11, alpha=0.05 / 39), "worse"),
    (against(-0.5, -0.99, -0.01, diverged=2), "2 of 8 diverged: no claim"),
]


@pytest.mark.parametrize(("case", "reads"), CASES)
def test_a_difference_reads_as_its_interval_allows(case, reads):
    assert verdict(SimpleNamespace(**case)) == reads


def test_the_table_of_losses_reads_as_its_rows():
    table = loss_table(pd.DataFrame([case for case, _ in CASES]))
    assert table["reads"].tolist() == [reads for _, reads in CASES]
    worse = table[table["reads"] == "worse"].iloc[0]
    assert worse[["arm", "n", "loss", "interval"]].tolist() == [
        "LayerNorm, pre",
        6,
        "1.900",
        "[1.850, 1.950]",
    ]
    assert worse[["difference", "its interval"]].tolist() == ["+0.500", "[+0.010, +0.990]"]
    diverged = table[table["reads"] == "diverged"].iloc[0]
    assert diverged[["loss", "difference", "its interval"]].tolist() == ["–", "–", "–"]


def test_the_table_of_gains_has_a_dash_for_a_diverged_arm():
    gains = pd.DataFrame(
        {
            "arm": ["layernorm", "dyt"],
            "placement": ["pre", "post"],
            "n": [2, NAN],
            **{part + end: [1.25, NAN] for part in ("first", "later", "last") for end in ENDS},
        }
    )
    assert gain_table(gains).to_numpy().tolist() == [
        ["LayerNorm, pre", 2, *["1.250 [1.250, 1.250]"] * 3],
        ["DyT, post", 0, "–", "–", "–"],
    ]


@pytest.mark.parametrize("arm", ARMS)
def test_an_arm_is_called_by_its_label_and_placement(arm):
    assert name(arm, "pre") == f"{ARMS[arm].label}, pre"
    assert name(arm, "none") == ARMS[arm].label


def published(**changes) -> pd.DataFrame:
    cells = {
        "quantity": "validation loss",
        "value": 1.88,
        "windows": 240,
        "protocol": "20 batches",
        "source": "nanoGPT, README",
        "differs_because": "a sample",
        "settings": "nanogpt_cpu.json",
    }
    return pd.DataFrame([cells | changes])


def beside(table: pd.DataFrame, same: bool) -> pd.Series:
    baseline = pd.Series(row())
    return published_table(table, {"nanogpt_cpu.json": same}, baseline, window_sd=0.31).iloc[0]


def test_a_number_is_compared_under_the_same_settings():
    cells = beside(published(), same=True)
    assert cells[["as published", "corrected", "n"]].tolist() == [
        "1.88",
        "1.900 [1.850, 1.950]",
        "6",
    ]
    # 0.31 / sqrt(240)
    assert cells["why they differ"] == "a sample; the standard error of such a sample is 0.020"


def test_a_number_is_not_compared_under_other_settings():
    cells = beside(published(), same=False)
    assert cells["corrected"] == "not comparable: other settings"
    assert cells["n"] == "–"
    assert "standard error" not in cells["why they differ"]


def flattened(settings: dict, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    parts = []
    for key, value in settings.items():
        parts += flattened(value, (*path, key)) if isinstance(value, dict) else [(*path, key)]
    return parts


def test_the_same_settings_cover_and_more_may_be_there():
    assert is_covered(NANOGPT, NANOGPT | {"threads": 2})


@pytest.mark.parametrize("path", flattened(NANOGPT))
def test_every_setting_counts(path):
    ours = copy.deepcopy(NANOGPT)
    part = ours
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = "other"
    assert not is_covered(NANOGPT, ours)


def test_every_choice_of_model_and_training_but_how_it_is_run_must_agree():
    assert set(NANOGPT["model"]) == set(Model.model_fields)
    free = {"eval_every", "log_every", "loss_bound", "precision"}
    assert set(NANOGPT["training"]) == set(Training.model_fields) - free


def test_a_diverged_baseline_is_called_so():
    diverged = pd.Series(row(n=0, mean=NAN, low=NAN, high=NAN))
    cells = published_table(published(), {"nanogpt_cpu.json": True}, diverged, NAN).iloc[0]
    assert cells[["corrected", "n", "why they differ"]].tolist() == ["diverged", "–", "a sample"]


def test_a_number_over_the_whole_split_has_no_standard_error():
    assert beside(published(windows=NAN), same=True)["why they differ"] == "a sample"


def test_the_published_numbers_name_their_settings():
    table = pd.read_csv(DATA / "published.csv")
    assert {(DATA / name).is_file() for name in table["settings"]} == {True}
    assert (
        table[["quantity", "value", "protocol", "source", "differs_because"]].notna().all(axis=None)
    )


@pytest.mark.parametrize(("alpha", "seeds"), [(0.05, 6), (0.01, 8), (0.05 / 39, 11), (0.5, 2)])
def test_seeds_needed_are_the_least_whose_sign_flips_reach_alpha(alpha, seeds):
    assert seeds_needed(alpha) == seeds
    assert 2.0 ** (1 - seeds) <= alpha < 2.0 ** (2 - seeds)


def test_notes_are_those_of_the_arms_that_are_there():
    assert notes({"layernorm", "none"}) == []
    assert "BatchNorm" in " ".join(notes({"layernorm", "batchnorm"}))
    assert len(notes({"batchnorm", "manual_l2", "derf"})) == 3
