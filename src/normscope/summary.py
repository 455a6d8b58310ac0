"""The sentences and tables of the paper, made from the workflow's tables alone."""

import math
from collections.abc import Mapping

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


def loss_table(arms: pd.DataFrame) -> pd.DataFrame:
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
            "reads": [verdict(r) for r in records(arms)],
        }
    )


def verdict(row) -> str:
    """What the difference to the baseline shows: a claim needs an interval that excludes 0."""
    if row.n == 0:
        return "diverged"
    if math.isnan(row.difference):
        return "baseline" if row.pairs else "no seed shared with the baseline"
    if math.isnan(row.difference_low):
        return "one model: no claim"
    if row.difference_low > 0:
        return "worse"
    return "better" if row.difference_high < 0 else "not told apart"


def gain_table(gains: pd.DataFrame) -> pd.DataFrame:
    """Growth of the residual stream a block, and the last block's gain."""
    return pd.DataFrame(
        {
            "arm": [name(r.arm, r.placement) for r in records(gains)],
            "n": gains["n"].fillna(0).astype(int),
            "growth a block": [number(v) for v in gains["growth"]],
            "interval": [interval(r.growth_low, r.growth_high) for r in records(gains)],
            "last block": [number(v) for v in gains["last_gain"]],
            "its interval": [interval(r.last_gain_low, r.last_gain_high) for r in records(gains)],
        }
    )


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
