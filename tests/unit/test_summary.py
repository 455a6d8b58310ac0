"""The summary: what each table says, and what it refuses to say."""

import math
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from normscope.arms import ARMS
from normscope.summary import SETTINGS, gain_table, loss_table, name, published_table, verdict

NAN = math.nan
ENDS = ("", "_low", "_high")
NANOGPT: dict[str, float | str] = {
    "baseline": "layernorm-pre",
    "n_layer": 4,
    "n_head": 4,
    "n_embd": 128,
    "block_size": 64,
    "dropout": 0.0,
    "batch_size": 12,
    "steps": 2000,
    "learning_rate": 0.001,
}


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
]


@pytest.mark.parametrize(("case", "reads"), CASES)
def test_a_difference_reads_as_its_interval_allows(case, reads):
    assert verdict(SimpleNamespace(**case), 0.95) == reads


def test_the_table_of_losses_reads_as_its_rows():
    table = loss_table(pd.DataFrame([case for case, _ in CASES]), 0.95)
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
    return pd.DataFrame(
        [
            {
                "quantity": "validation loss",
                "value": 1.88,
                "windows": 240,
                "protocol": "20 batches",
                "source": "nanoGPT, README",
                "differs_because": "a sample",
                **NANOGPT,
                **changes,
            }
        ]
    )


def beside(table: pd.DataFrame, settings: dict[str, float | str]) -> pd.Series:
    return published_table(table, settings, pd.Series(row()), window_sd=0.31).iloc[0]


def test_a_number_is_compared_under_the_same_settings():
    cells = beside(published(), NANOGPT)
    assert cells[["as published", "corrected", "n"]].tolist() == [
        "1.88",
        "1.900 [1.850, 1.950]",
        "6",
    ]
    # 0.31 / sqrt(240)
    assert cells["why they differ"] == "a sample; the standard error of such a sample is 0.020"


def test_settings_are_these():
    assert set(SETTINGS) == set(NANOGPT)


@pytest.mark.parametrize("key", SETTINGS)
def test_a_number_is_not_compared_under_other_settings(key):
    value = NANOGPT[key]
    other = "rmsnorm-pre" if isinstance(value, str) else value + 1
    cells = beside(published(), NANOGPT | {key: other})
    assert cells["corrected"] == "not comparable: other settings"
    assert cells["n"] == "–"
    assert "standard error" not in cells["why they differ"]


def test_a_diverged_baseline_is_called_so():
    diverged = pd.Series(row(n=0, mean=NAN, low=NAN, high=NAN))
    cells = published_table(published(), NANOGPT, diverged, NAN).iloc[0]
    assert cells[["corrected", "n", "why they differ"]].tolist() == ["diverged", "–", "a sample"]


def test_a_number_over_the_whole_split_has_no_standard_error():
    assert beside(published(windows=NAN), NANOGPT)["why they differ"] == "a sample"


def test_the_published_numbers_come_with_their_settings():
    table = pd.read_csv(Path(__file__).parents[2] / "data" / "published.csv")
    assert table[SETTINGS].notna().all(axis=None)
    cells = published_table(table, NANOGPT, pd.Series(row()), 0.31)
    assert len(cells) == len(table)
    assert set(cells["corrected"]) == {"1.900 [1.850, 1.950]"}
