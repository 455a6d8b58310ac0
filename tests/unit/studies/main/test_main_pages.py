"""The tables of the main study's page, and what a difference may be read as."""

import json
import math
from typing import Any

import pandas as pd
import pytest
import yaml
from page_recipes import rows_of
from processes import ROOT
from snakemake.utils import update_config

from normscope.config import load
from normscope.nn.recipe import Model
from normscope.pilot import read_project
from normscope.schema import ADDED
from normscope.studies.main.pages import (
    loss_table,
    published_table,
)
from normscope.studies.main.published import is_covered, published_numbers
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
    (arm(0.5, -0.01, 1.01), "no difference found"),
    (arm(-0.5, -1.01, 0.01), "no difference found"),
    (arm(0.5, 0.0, 1.0), "no difference found"),
]


def test_losses_have_intervals_and_differences_that_read_as_these_allow():
    table = rows_of(loss_table(pd.DataFrame([case for case, _ in CASES])))
    assert [r["reads"] for r in table] == [reads for _, reads in CASES]
    assert table[5] == {
        **{"protocol": "nanogpt", "norm": "LayerNorm, pre", "n": "6", "rates": "3"},
        "learning rate": "0.003",
        **{"failed": "0", "loss": "1.900", "interval": "[1.850, 1.950]"},
        **{"difference": "+0.500", "its interval": "[+0.010, +0.990]", "reads": "worse"},
    }
    assert (table[1]["interval"], table[3]["its interval"]) == ("–", "–")
    assert table[6]["learning rate"] == "0.003 (end of the range)"


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
    compared = published_numbers(number(**changes), [is_same], pd.DataFrame(models), 0.95)
    (line,) = rows_of(published_table(compared, window_sd=0.31))
    ours, n, error = cells
    assert (line["as published"], line["corrected"], line["n"]) == ("1.88", ours, n)
    why = f"; the standard error of such a sample is {error:.3f}" if error else ""
    assert line["why they differ"] == f"a sample{why}"


@pytest.mark.parametrize(("settings", "variant"), [("cpu", None), ("gpu", "gpu.yaml")])
def test_the_published_settings_are_all_scientific_choices_of_a_configuration(settings, variant):
    reference = json.loads((DATA / f"nanogpt_{settings}.json").read_text())
    # the defaults of fields that were added later leave published models and trainings as they are
    model, training = (
        {name for name, field in recipe.model_fields.items() if ADDED not in field.metadata}
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
