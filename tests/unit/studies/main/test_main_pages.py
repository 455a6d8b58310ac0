"""The tables of the main study's page, and what a difference may be read as."""

import json
import math
from typing import Any

import pandas as pd
import pytest
import yaml
from page_recipes import config, shown
from processes import ROOT
from snakemake.utils import update_config

from normscope.config import load
from normscope.nn.recipe import Model
from normscope.pilot import read_project
from normscope.schema import LATER
from normscope.studies.main.pages import (
    batch_table,
    gain_table,
    loss_numbers,
    loss_table,
    notes,
    published_table,
    section,
)
from normscope.studies.main.tabulate import is_covered, published
from normscope.train.files import METRICS
from normscope.train.recipe import Training

NAN = math.nan
ENDS = ("", "_low", "_high")
DATA = ROOT / "data"


def arm(*difference: float, **changes: Any) -> dict[str, Any]:
    """A row of arms.csv, of six models; without a difference it is the baseline's."""
    difference = difference or (NAN, NAN, NAN)
    key = {"protocol": "nanogpt", "arm": "layernorm", "placement": "pre", "n": 6, "pairs": 6}
    rates = {"rates": 3, "rate": 0.003, "at_edge": False, "diverged": 0, "failed": 0}
    bounds = {"mean": 1.9, "low": 1.85, "high": 1.95}
    differences = {f"difference{end}": v for end, v in zip(ENDS, difference, strict=True)}
    return key | rates | bounds | differences | changes


CASES = [
    (arm(), "baseline"),
    (arm(n=1, low=NAN, high=NAN, pairs=1), "baseline"),
    (arm(pairs=0), "no seed shared with the baseline"),
    (arm(-0.5, NAN, NAN, n=1, pairs=1), "1 seed: no claim"),
    (arm(0.5, 0.01, 0.99, n=5, pairs=5), "5 seeds: no claim"),
    (arm(0.5, 0.01, 0.99), "worse"),
    (arm(0.5, 0.01, 0.99, at_edge=True), "worse at the rates tried"),
    (arm(-0.5, -0.99, -0.01), "better"),
    (arm(0.5, -0.01, 1.01), "not told apart"),
    (arm(-0.5, -1.01, 0.01), "not told apart"),
    (arm(0.5, 0.0, 1.0), "not told apart"),
]


def test_losses_have_intervals_and_differences_that_read_as_these_allow():
    table = shown(loss_table(pd.DataFrame([case for case, _ in CASES])))
    assert [r["reads"] for r in table] == [reads for _, reads in CASES]
    assert table[5] == {
        **{"arm": "LayerNorm, pre", "n": "6", "rates": "3", "learning rate": "0.003"},
        **{"failed": "0", "loss": "1.900", "interval": "[1.850, 1.950]"},
        **{"difference": "+0.500", "its interval": "[+0.010, +0.990]", "reads": "worse"},
    }
    assert (table[1]["interval"], table[3]["its interval"]) == ("–", "–")
    assert table[6]["learning rate"] == "0.003 (at the edge)"


def test_gains_have_a_dash_for_a_diverged_arm():
    gains = pd.DataFrame(
        {"arm": ["layernorm", "none"], "placement": ["pre", "none"], "n": [2, NAN]}
    )
    values = {part + end: [1.25, NAN] for part in ("first", "later", "last") for end in ENDS}
    assert gain_table(gains.assign(**values), "small").texts() == [
        ["LayerNorm, pre", "2", *["1.250 [1.250, 1.250]"] * 3],
        ["No norm", "0", "–", "–", "–"],
    ]


def number(**changes: Any) -> pd.DataFrame:
    """A row of published.csv."""
    words = {"quantity": "validation loss", "protocol": "20 batches", "source": "nanoGPT, README"}
    numbers = {"measure": "val_loss", "value": 1.88, "windows": 240, "differs_because": "a sample"}
    return pd.DataFrame([words | numbers | changes])


LOSSES = {"val_loss": [1.85, 1.95], "best_val_loss": [1.65, 1.75]}


@pytest.mark.parametrize(
    ("changes", "is_same", "models", "cells"),
    [
        # 0.31 / sqrt(240); t of one degree of freedom: 12.706
        ({}, True, LOSSES, ("1.900 [1.265, 2.535]", "2", 0.020)),
        ({}, False, LOSSES, ("not comparable: other settings", "–", None)),
        ({}, True, {"val_loss": [NAN, NAN]}, ("diverged", "–", None)),
        ({"windows": NAN}, True, LOSSES, ("1.900 [1.265, 2.535]", "2", None)),
        ({"measure": "best_val_loss"}, True, LOSSES, ("1.700 [1.065, 2.335]", "2", 0.020)),
    ],
)
def test_a_published_number_is_compared_under_the_same_settings(changes, is_same, models, cells):
    compared = published(number(**changes), [is_same], pd.DataFrame(models), 0.95)
    (line,) = shown(published_table(compared, window_sd=0.31))
    ours, n, error = cells
    assert (line["as published"], line["corrected"], line["n"]) == ("1.88", ours, n)
    why = f"; the standard error of such a sample is {error:.3f}" if error else ""
    assert line["why they differ"] == f"a sample{why}"


@pytest.mark.parametrize(("settings", "variant"), [("cpu", None), ("gpu", "gpu.yaml")])
def test_the_published_settings_are_all_scientific_choices_of_a_configuration(settings, variant):
    reference = json.loads((DATA / f"nanogpt_{settings}.json").read_text())
    # the defaults of fields that were added later leave published models and trainings as they are
    model, training = (
        {name for name, field in recipe.model_fields.items() if LATER not in field.metadata}
        for recipe in (Model, Training)
    )
    assert set(reference["model"]) == model
    free = {"eval_every", "log_every", "loss_bound", "records_scales", "precision"}
    assert set(reference["training"]) == training - free
    raw = read_project(ROOT)
    if variant:
        update_config(raw, yaml.safe_load((ROOT / "config" / variant).read_text()))
    main = load(raw).main
    ours = main.trainings()[main.reference_jobs[0]]
    baseline = f"{main.baseline.arm}-{main.baseline.placement}"
    assert is_covered(reference, reference | {"baseline": baseline} | ours.model_dump())


def test_published_numbers_have_settings_and_a_measure_of_ours():
    table = pd.read_csv(DATA / "published.csv")
    assert {(DATA / name).is_file() for name in table["settings"]} == {True}
    assert set(table["measure"]) <= set(METRICS)


def test_notes_are_those_of_the_arms_that_were_trained():
    assert notes({"layernorm", "none"}) == []
    assert "BatchNorm" in " ".join(notes({"layernorm", "batchnorm"}))
    assert len(notes({"batchnorm", "manual_l2", "derf"})) == 3


def batch(size: int, excess: float, failed: int = 0) -> dict[str, Any]:
    key = {"protocol": f"batch_{size}", "arm": "batchnorm", "placement": "pre", "batch_size": size}
    key |= {"text": "dataset"}
    return key | {"capped_loss": 2.0 + excess, "excess": excess, "failed": failed}


def test_batch_sizes_have_losses_and_their_excess():
    batches = pd.DataFrame([batch(1, 0.2), batch(1, 0.4), batch(8, 0, failed=1)])
    first, last = batch_table(batches, 0.95).texts()
    # t of one degree of freedom: 12.706, times 0.1
    assert first[2:] == ["1", "2", "0", "2.300", "+0.300", "[−0.971, +1.571]"]
    assert last[2:] == ["8", "1", "1", "2.000", "+0.000", "–"]
    assert batch_table(batches[:0], 0.95).rows == ()


def test_a_section_has_its_words_and_tables():
    gains = {f"{part}{end}": 1.25 for part in ("first", "later", "last") for end in ENDS}
    key = {"protocol": "nanogpt", "arm": "layernorm", "placement": "pre"}
    model = key | {"learning_rate": 0.001, "seed": 1, "diverged_at": NAN, "failed": 0}
    runs = [model | {"val_loss_window_sd": 0.31}, model | {"protocol": "small", "failed": 1}]
    arms = [arm(), arm(arm="dyt", mean=NAN), arm(protocol="small"), arm(protocol="batch_1")]
    arms.append(arm(protocol="small_austen"))
    tables = {
        "runs": pd.DataFrame(runs),
        "arms": pd.DataFrame(arms),
        "batches": pd.DataFrame([batch(1, 0.3), batch(32, 0)]),
        "gain_by_arm": pd.DataFrame([{**key, "n": 2, **gains}]),
        "published": published(number(), [True], pd.DataFrame(LOSSES), 0.95),
        "corpus": pd.DataFrame(
            [
                {"text": "dataset", "characters": 65, "train_tokens": 12345, "val_tokens": 9},
                {"text": "austen", "characters": 75, "train_tokens": 1, "val_tokens": 1},
            ]
        ),
    }
    whole = config()
    part = section(whole.main, tables, whole.settings)
    expected = [
        "published",
        "loss_nanogpt",
        "loss_small",
        "loss_small_austen",
        "batches",
        "gain_nanogpt",
    ]
    assert list(part.tables) == expected
    words = part.words
    texts = {p["name"]: (p["text"], p["characters"]) for p in words["protocols"]}
    assert texts["small_austen"] == ("austen", 75)
    assert texts["nanogpt"] == texts["small"] == ("dataset", 65)
    assert (words["characters"], str(words["train"]), words["needed"]) == (65, "12,345", 6)
    assert (words["baseline"], words["n_layer"]) == (
        "layernorm-pre",
        whole.main.protocols["nanogpt"].model.n_layer,
    )
    assert words["count"] == "1 trained model of LayerNorm pre 0.001"
    assert (words["others"], words["models"], words["failed"]) == (1, 2, 1)


def test_losses_are_numbers_by_protocol_arm_and_placement():
    arms = pd.DataFrame([arm(), arm(arm="dyt", mean=NAN)])
    numbers = loss_numbers(arms)
    assert str(numbers["nanogpt layernorm pre loss low"]) == "1.850"
    assert "nanogpt dyt pre loss" not in numbers
