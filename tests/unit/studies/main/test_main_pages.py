"""The main study's tables: what each says, and what it refuses to say."""

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
from normscope.errors import Explained
from normscope.nn.arms import ARMS
from normscope.nn.recipe import Model
from normscope.paper.section import declared_numbers, named
from normscope.studies.main.figures import arm_label
from normscope.studies.main.pages import (
    batch_table,
    gain_table,
    loss_table,
    notes,
    published_table,
    section,
    verdict,
)
from normscope.studies.main.tables import TABLES
from normscope.studies.main.tabulate import is_covered
from normscope.studies.main.tabulate import published as beside
from normscope.train.files import METRICS
from normscope.train.recipe import Training

NAN = math.nan
ENDS = ("", "_low", "_high")
DATA = ROOT / "data"


def row(**changes: Any) -> dict[str, Any]:
    """A baseline of six models; changes make it another arm."""
    key = {"protocol": "nanogpt", "arm": "layernorm", "placement": "pre", "n": 6, "pairs": 6}
    rates = {"rates": 3, "rate": 0.003, "at_edge": False, "diverged": 0, "failed": 0}
    bounds = {"mean": 1.9, "low": 1.85, "high": 1.95}
    differences = dict.fromkeys((f"difference{end}" for end in ENDS), NAN)
    return key | rates | bounds | differences | changes


def against(difference: float, low: float, high: float, **changes: Any) -> dict[str, Any]:
    bounds = {"difference": difference, "difference_low": low, "difference_high": high}
    return row(**bounds, **changes)


CASES = [
    (row(), "baseline"),
    (row(n=1, low=NAN, high=NAN, pairs=1), "baseline"),
    (row(pairs=0), "no seed shared with the baseline"),
    (against(-0.5, NAN, NAN, n=1, pairs=1), "1 seed: no claim"),
    (against(0.5, 0.01, 0.99), "worse"),
    (against(-0.5, -0.99, -0.01), "better"),
    (against(0.5, -0.01, 1.01), "not told apart"),
    (against(-0.5, -1.01, 0.01), "not told apart"),
    (against(0.5, 0.0, 1.0), "not told apart"),
    (against(0.5, 0.01, 0.99, n=5, pairs=5), "5 seeds: no claim"),
]


@pytest.mark.parametrize(("case", "reads"), CASES)
def test_a_difference_reads_as_its_interval_allows(case, reads):
    assert verdict(case) == reads


def test_losses_stand_beside_their_intervals_and_differences():
    table = shown(loss_table(pd.DataFrame([case for case, _ in CASES])))
    assert [r["reads"] for r in table] == [reads for _, reads in CASES]
    assert table[4] == {
        **{"arm": "LayerNorm, pre", "n": "6", "rates": "3", "learning rate": "0.003"},
        **{"failed": "0", "loss": "1.900", "interval": "[1.850, 1.950]"},
        **{"difference": "+0.500", "its interval": "[+0.010, +0.990]", "reads": "worse"},
    }
    assert (table[1]["interval"], table[3]["its interval"]) == ("–", "–")
    (edge,) = shown(loss_table(pd.DataFrame([row(rate=0.01, at_edge=True)])))
    assert edge["learning rate"] == "0.01 (at the edge)"


def test_gains_have_a_dash_for_a_diverged_arm():
    parts = ("first", "later", "last")
    gains = pd.DataFrame({"arm": ["layernorm", "dyt"], "placement": ["pre", "post"], "n": [2, NAN]})
    values = {part + end: [1.25, NAN] for part in parts for end in ENDS}
    assert gain_table(gains.assign(**values), "small").texts() == [
        ["LayerNorm, pre", "2", *["1.250 [1.250, 1.250]"] * 3],
        ["DyT, post", "0", "–", "–", "–"],
    ]


@pytest.mark.parametrize("arm", ["layernorm", "manual_l2", "none"])
def test_an_arm_is_called_by_its_label_and_placement(arm):
    assert arm_label(arm, "pre") == f"{ARMS[arm].label}, pre"
    assert arm_label(arm, "none") == ARMS[arm].label


def published(**changes: Any) -> pd.DataFrame:
    text = {"quantity": "validation loss", "protocol": "20 batches", "source": "nanoGPT, README"}
    numbers = {"measure": "val_loss", "value": 1.88, "windows": 240, "differs_because": "a sample"}
    return pd.DataFrame([text | numbers | changes])


LOSSES = {"val_loss": [1.85, 1.95], "best_val_loss": [1.65, 1.75]}


@pytest.mark.parametrize(
    ("changes", "is_same", "own", "cells"),
    [
        # 0.31 / sqrt(240); t of one degree of freedom: 12.706
        ({}, True, LOSSES, ("1.900 [1.265, 2.535]", "2", 0.020)),
        ({}, False, LOSSES, ("not comparable: other settings", "–", None)),
        ({}, True, {"val_loss": [NAN, NAN]}, ("diverged", "–", None)),
        ({"windows": NAN}, True, LOSSES, ("1.900 [1.265, 2.535]", "2", None)),
        ({"measure": "best_val_loss"}, True, LOSSES, ("1.700 [1.065, 2.335]", "2", 0.020)),
    ],
)
def test_a_published_number_is_compared_under_the_same_settings(changes, is_same, own, cells):
    beside_ours = beside(published(**changes), [is_same], pd.DataFrame(own), 0.95)
    (line,) = shown(published_table(beside_ours, window_sd=0.31))
    ours, n, error = cells
    assert (line["as published"], line["corrected"], line["n"]) == ("1.88", ours, n)
    why = f"; the standard error of such a sample is {error:.3f}" if error else ""
    assert line["why they differ"] == f"a sample{why}"


@pytest.mark.parametrize(("settings", "variant"), [("cpu", None), ("gpu", "gpu.yaml")])
def test_the_published_settings_are_all_choices_but_how_a_model_is_run(settings, variant):
    """And those of a configuration that is here."""
    reference = json.loads((DATA / f"nanogpt_{settings}.json").read_text())
    assert set(reference["model"]) == set(Model.model_fields)
    free = {"eval_every", "log_every", "loss_bound", "records_sigma", "precision"}
    assert set(reference["training"]) == set(Training.model_fields) - free
    raw = yaml.safe_load((ROOT / "config.yaml").read_text())
    if variant:
        update_config(raw, yaml.safe_load((ROOT / "config" / variant).read_text()))
    main = load(raw).main
    own = main.trainings()[main.reference_jobs[0]]
    baseline = f"{main.baseline.arm}-{main.baseline.placement}"
    assert is_covered(reference, reference | {"baseline": baseline} | own.model_dump())


def test_published_numbers_have_settings_and_a_measure_of_ours():
    table = pd.read_csv(DATA / "published.csv")
    assert {(DATA / name).is_file() for name in table["settings"]} == {True}
    assert set(table["measure"]) <= set(METRICS)


def test_notes_are_those_of_the_arms_that_are_there():
    assert notes({"layernorm", "none"}) == []
    assert "BatchNorm" in " ".join(notes({"layernorm", "batchnorm"}))
    assert len(notes({"batchnorm", "manual_l2", "derf"})) == 3


def batch(arm: str, size: int, excess: float, **changes: Any) -> dict[str, Any]:
    key = {"protocol": f"batch_{size}", "arm": arm, "placement": "pre", "batch_size": size}
    return key | {"capped_loss": 2.0 + excess, "excess": excess, "failed": 0} | changes


def test_batch_sizes_stand_below_each_other():
    rows = [batch("batchnorm", 1, excess) for excess in (0.2, 0.4)]
    table = shown(batch_table(pd.DataFrame([*rows, batch("batchnorm", 8, 0, failed=1)]), 0.95))
    assert [r["batch size"] for r in table] == ["1", "8"]
    first, last = table
    # t of one degree of freedom: 12.706, times 0.1
    assert (first["n"], first["loss"], first["above the greatest size"]) == ("2", "2.300", "+0.300")
    assert first["interval"] == "[-0.971, +1.571]".replace("-", "−")
    assert (last["failed"], last["interval"]) == ("1", "–")


def test_a_section_has_its_words_tables_and_numbers_and_no_two_of_one_name():
    gains = {f"{part}{end}": 1.25 for part in ("first", "later", "last") for end in ENDS}
    key = {"protocol": "nanogpt", "arm": "layernorm", "placement": "pre"}
    model = key | {"learning_rate": 0.001, "seed": 1, "diverged_at": NAN, "failed": 0}
    runs = [model | {"val_loss_window_sd": 0.31}, model | {"protocol": "small", "failed": 1}]
    small = row(protocol="small")
    batches = pd.DataFrame([batch("batchnorm", 1, 0.3), batch("batchnorm", 32, 0)])
    tables = {
        "runs": pd.DataFrame(runs),
        "arms": pd.DataFrame([row(), row(arm="dyt", mean=NAN), small, row(protocol="batch_1")]),
        "batches": batches,
        "gain_by_arm": pd.DataFrame([{**key, "n": 2, **gains}]),
        "published": beside(published(), [True], pd.DataFrame(LOSSES), 0.95),
        "corpus": pd.DataFrame([{"characters": 65, "train_tokens": 12345, "val_tokens": 9}]),
    }
    whole = config()
    part = section(whole.main, tables, whole.settings)
    expected = ["published", "loss_nanogpt", "loss_small", "batches", "gain_nanogpt"]
    assert list(part.tables) == expected
    words = part.words
    assert (words["characters"], str(words["train"]), words["needed"]) == (65, "12,345", 6)
    assert (words["baseline"], words["n_layer"]) == ("layernorm-pre", whole.model.n_layer)
    assert words["count"] == "1 trained model of LayerNorm pre 0.001"
    assert (words["others"], words["models"], words["failed"]) == (1, 2, 1)
    of_arms = declared_numbers(TABLES["arms"], tables["arms"])
    numbers = named([*of_arms, *declared_numbers(TABLES["gain_by_arm"], tables["gain_by_arm"])])
    assert str(numbers["nanogpt layernorm pre loss low"]) == "1.850"
    assert str(numbers["nanogpt layernorm pre last gain"]) == "1.250"
    assert "nanogpt dyt pre loss" not in numbers
    twice = pd.DataFrame([row(), row(arm="dyt"), row(arm="dyt")])
    with pytest.raises(Explained, match="two numbers are called 'nanogpt dyt pre loss'"):
        named(declared_numbers(TABLES["arms"], twice))
