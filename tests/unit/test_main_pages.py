"""The main study's tables: what each says, and what it refuses to say."""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from page_recipes import config, shown
from snakemake.utils import update_config

from normscope.config import load
from normscope.errors import Explained
from normscope.nn.arms import ARMS
from normscope.nn.recipe import Model
from normscope.paper.section import named
from normscope.studies.main.figures import arm_label
from normscope.studies.main.pages import (
    OURS,
    gain_table,
    loss_table,
    notes,
    published_table,
    section,
    verdict,
)
from normscope.studies.main.tables import is_covered
from normscope.train.recipe import Training

NAN = math.nan
ENDS = ("", "_low", "_high")
ROOT = Path(__file__).parents[2]
DATA = ROOT / "data"


def row(**changes: Any) -> dict[str, Any]:
    """A baseline of six models; changes make it another arm."""
    key = {"arm": "layernorm", "placement": "pre", "n": 6, "pairs": 6, "diverged": 0}
    bounds = {"mean": 1.9, "low": 1.85, "high": 1.95, "alpha": 0.05}
    bounds |= {"best": 1.7, "best_low": 1.65, "best_high": 1.75}
    return key | bounds | dict.fromkeys((f"difference{end}" for end in ENDS), NAN) | changes


def against(difference: float, low: float, high: float, **changes: Any) -> dict[str, Any]:
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
    # of five sign flips the least two-sided p is 2/32, above 0.05; of six it is 2/64
    (against(0.5, 0.01, 0.99, n=5, pairs=5), "5 seeds: no claim"),
    # 39 comparisons leave 0.00128 to each, which ten flips (2/1024) miss and eleven (2/2048) reach
    (against(0.5, 0.01, 0.99, n=10, pairs=10, alpha=0.05 / 39), "10 seeds: no claim"),
    (against(0.5, 0.01, 0.99, n=11, pairs=11, alpha=0.05 / 39), "worse"),
    (against(-0.5, -0.99, -0.01, diverged=2), "2 of 8 diverged: no claim"),
]


@pytest.mark.parametrize(("case", "reads"), CASES)
def test_a_difference_reads_as_its_interval_allows(case, reads):
    assert verdict(case) == reads


def test_losses_stand_beside_their_intervals_and_differences():
    table = shown(loss_table(pd.DataFrame([case for case, _ in CASES])))
    assert [r["reads"] for r in table] == [reads for _, reads in CASES]
    assert table[5] == {
        **{"arm": "LayerNorm, pre", "n": "6", "loss": "1.900", "interval": "[1.850, 1.950]"},
        **{"difference": "+0.500", "its interval": "[+0.010, +0.990]", "reads": "worse"},
    }
    assert [table[2][k] for k in ("loss", "difference", "its interval")] == ["–"] * 3


def test_gains_have_a_dash_for_a_diverged_arm():
    parts = ("first", "later", "last")
    gains = pd.DataFrame({"arm": ["layernorm", "dyt"], "placement": ["pre", "post"], "n": [2, NAN]})
    values = {part + end: [1.25, NAN] for part in parts for end in ENDS}
    assert gain_table(gains.assign(**values)).rows == (
        ("LayerNorm, pre", "2", *["1.250 [1.250, 1.250]"] * 3),
        ("DyT, post", "0", "–", "–", "–"),
    )


@pytest.mark.parametrize("arm", ["layernorm", "manual_l2", "none"])
def test_an_arm_is_called_by_its_label_and_placement(arm):
    assert arm_label(arm, "pre") == f"{ARMS[arm].label}, pre"
    assert arm_label(arm, "none") == ARMS[arm].label


def published(**changes: Any) -> pd.DataFrame:
    text = {"quantity": "validation loss", "protocol": "20 batches", "source": "nanoGPT, README"}
    numbers = {
        "measure": "val_loss",
        "value": 1.88,
        "windows": 240,
        "differs_because": "a sample",
        "comparable": True,
    }
    return pd.DataFrame([text | numbers | changes])


@pytest.mark.parametrize(
    ("changes", "baseline", "cells"),
    [
        # 0.31 / sqrt(240)
        (
            {},
            row(),
            ("1.900 [1.850, 1.950]", "6", "; the standard error of such a sample is 0.020"),
        ),
        ({"comparable": False}, row(), ("not comparable: other settings", "–", "")),
        ({}, row(n=0, mean=NAN, low=NAN, high=NAN), ("diverged", "–", "")),
        ({"windows": NAN}, row(), ("1.900 [1.850, 1.950]", "6", "")),
        (
            {"windows": NAN, "measure": "best_val_loss"},
            row(),
            ("1.700 [1.650, 1.750]", "6", ""),
        ),
    ],
)
def test_a_published_number_is_compared_under_the_same_settings(changes, baseline, cells):
    (beside,) = shown(published_table(published(**changes), baseline, window_sd=0.31))
    ours, n, why = cells
    assert (beside["as published"], beside["corrected"], beside["n"]) == ("1.88", ours, n)
    assert beside["why they differ"] == f"a sample{why}"


@pytest.mark.parametrize(("settings", "variant"), [("cpu", None), ("gpu", "gpu.yaml")])
def test_the_published_settings_are_all_choices_but_how_a_model_is_run(settings, variant):
    """And those of a configuration that is here."""
    reference = json.loads((DATA / f"nanogpt_{settings}.json").read_text())
    assert set(reference["model"]) == set(Model.model_fields)
    free = {"eval_every", "log_every", "loss_bound", "precision"}
    assert set(reference["training"]) == set(Training.model_fields) - free
    raw = yaml.safe_load((ROOT / "config.yaml").read_text())
    if variant:
        update_config(raw, yaml.safe_load((ROOT / "config" / variant).read_text()))
    main = load(raw).main
    ours = reference | {"baseline": str(main.reference)}
    assert is_covered(reference, ours | main.model_dump(include={"model", "training"}))


def test_published_numbers_have_settings_and_a_measure_of_ours():
    table = pd.read_csv(DATA / "published.csv")
    assert {(DATA / name).is_file() for name in table["settings"]} == {True}
    assert set(table["measure"]) == set(OURS)


def test_notes_are_those_of_the_arms_that_are_there():
    assert notes({"layernorm", "none"}) == []
    assert "BatchNorm" in " ".join(notes({"layernorm", "batchnorm"}))
    assert len(notes({"batchnorm", "manual_l2", "derf"})) == 3


def test_a_section_has_its_words_tables_and_numbers_and_no_two_of_one_name():
    gains = {f"{part}{end}": 1.25 for part in ("first", "later", "last") for end in ENDS}
    runs = {"arm": "layernorm", "placement": "pre", "seed": 1, "val_loss": 1.9}
    tables = {
        "runs": pd.DataFrame([runs | {"diverged_at": NAN, "val_loss_window_sd": 0.31}]),
        "arms": pd.DataFrame([row(), row(arm="dyt", mean=NAN)]),
        "gain_by_arm": pd.DataFrame([{"arm": "layernorm", "placement": "pre", "n": 2, **gains}]),
        "published": published(),
        "corpus": pd.DataFrame([{"characters": 65, "train_tokens": 12345, "val_tokens": 9}]),
    }
    whole = config()
    part = section(whole.main, tables, whole.settings)
    assert list(part.tables) == ["loss", "gain", "published"]
    words = part.words
    assert (words["characters"], words["train"], words["needed"]) == (65, "12,345", 6)
    assert (words["baseline"], words["n_layer"]) == ("layernorm-pre", whole.model.n_layer)
    assert words["count"] == "1 trained model of layernorm pre"
    numbers = named(part.numbers)
    assert numbers["layernorm pre loss low"] == "1.850"
    assert numbers["layernorm pre last gain"] == "1.250"
    assert "dyt pre loss" not in numbers
    twice = tables | {"arms": pd.DataFrame([row(), row(arm="dyt"), row(arm="dyt")])}
    with pytest.raises(Explained, match="two numbers are called 'dyt pre loss'"):
        named(section(whole.main, twice, whole.settings).numbers)
