"""The sentences and tables of the paper, made from the workflow's tables alone."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from normscope.arms import ARMS
from normscope.tables import interval, number, records

SETTINGS = (
    "baseline n_layer n_head n_embd block_size dropout batch_size steps learning_rate".split()
)


def name(arm: str, placement: str) -> str:
    """How people call an arm with its placement."""
    label = ARMS[arm].label
    return label if placement == "none" else f"{label}, {placement}"


def loss_table(arms: pd.DataFrame, level: float) -> pd.DataFrame:
    """Validation loss by arm: n, mean, interval, difference to the baseline and what it shows."""
    return pd.DataFrame(
        {
            "arm": [name(r.arm, r.placement) for r in records(arms)],
            "n": arms["n"],
            "loss": [number(v) for v in arms["mean"]],
            "interval": [interval(r.low, r.high) for r in records(arms)],
            "difference": [number(v, sign=True) for v in arms["difference"]],
            "its interval": [
                interval(r.difference_low, r.difference_high, sign=True) for r in records(arms)
            ],
            "reads": [verdict(r, level) for r in records(arms)],
        }
    )


def verdict(row: Any, level: float) -> str:
    """What the difference to the baseline shows.

    A claim needs an interval that excludes 0, and seeds enough that an exact test could agree: of
    the sign flips of n paired differences, the least two-sided p is ``2^(1 - n)``.
    """
    if row.n == 0:
        return "diverged"
    if math.isnan(row.difference):
        return "baseline" if row.pairs else "no seed shared with the baseline"
    if 2.0 ** (1 - row.pairs) > 1 - level:
        return f"{row.pairs} seed{'s' if row.pairs > 1 else ''}: no claim"
    if row.difference_low > 0:
        return "worse"
    return "better" if row.difference_high < 0 else "not told apart"


def gain_table(gains: pd.DataFrame) -> pd.DataFrame:
    """Residual gain of the first block, of a later block, and of the last."""
    columns = {"first": "first block", "later": "a later block", "last": "last block"}
    table = {
        "arm": [name(r.arm, r.placement) for r in records(gains)],
        "n": gains["n"].fillna(0).astype(int),
    }
    for key, title in columns.items():
        bounds = zip(gains[f"{key}_low"], gains[f"{key}_high"], strict=True)
        cells = zip(gains[key], bounds, strict=True)
        table[title] = [
            number(v) if n < 2 else f"{number(v)} {interval(*b)}"
            for n, (v, b) in zip(table["n"], cells, strict=True)
        ]
    return pd.DataFrame(table)


def published_table(
    published: pd.DataFrame,
    settings: Mapping[str, float | str],
    baseline: pd.Series,
    window_sd: float,
) -> pd.DataFrame:
    """Each published number beside ours, compared only under the settings that it was had with."""
    rows = []
    for p in published.to_dict("records"):
        same = all(settings[key] == p[key] for key in SETTINGS)
        ours, n = "not comparable: other settings", "–"
        if same and not baseline["n"]:
            ours = "diverged"
        elif same:
            ours = f"{number(baseline['mean'])} {interval(baseline['low'], baseline['high'])}"
            n = str(int(baseline["n"]))
        reason = p["differs_because"]
        if same and baseline["n"] and p["windows"] > 0:  # NaN: not a sample
            error = window_sd / math.sqrt(p["windows"])
            reason += f"; the standard error of such a sample is {error:.3f}"
        rows.append(
            {
                "quantity": p["quantity"],
                "as published": f"{p['value']:g}",
                "protocol": p["protocol"],
                "source": p["source"],
                "corrected": ours,
                "n": n,
                "why they differ": reason,
            }
        )
    return pd.DataFrame(rows)
