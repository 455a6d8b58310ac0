"""From runs to arms: means, intervals and differences over trained models."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from normscope.statistics.summary import describe, split
from normscope.studies.main.recipe import Cell

KEYS = ["arm", "placement", "seed"]
PARTS = ("first", "later", "last")  # blocks of a model


def compare(runs: pd.DataFrame, baseline: Cell, level: float) -> pd.DataFrame:
    """A row per arm and placement: n, mean and interval of the last loss, and of the best.

    Then the difference of the last losses to the baseline over shared seeds.

    The intervals of the differences hold together at ``level``: Bonferroni over those with n > 1.
    ``alpha`` is what is left to one of them: ``(1 - level) / comparisons``.
    """
    is_baseline = (runs["arm"] == baseline.arm) & (runs["placement"] == baseline.placement)
    reference = runs[is_baseline].set_index("seed")["val_loss"].dropna()
    pairs = runs[runs["seed"].isin(reference.index) & ~is_baseline].dropna(subset="val_loss")
    compared = int((pairs.groupby(["arm", "placement"]).size() > 1).sum())
    alpha = (1 - level) / max(compared, 1)
    rows = []
    for (arm, placement), group in runs.groupby(["arm", "placement"], sort=False):
        loss = group.set_index("seed")["val_loss"].dropna()
        row: dict = {"arm": arm, "placement": placement, "alpha": alpha}
        row |= {"diverged": int(group["diverged_at"].notna().sum())} | describe(loss, level)
        row |= _named("best", describe(group["best_val_loss"].dropna(), level))
        paired = (loss - reference).dropna()
        row |= {"pairs": len(paired)}
        if (arm, placement) != baseline:
            row |= _named("difference", describe(paired, 1 - alpha))
        rows.append(row)
    columns = (
        "arm placement n diverged mean low high best best_low best_high alpha pairs "
        "difference difference_low difference_high"
    )
    return pd.DataFrame(rows, columns=columns.split())


def _named(name: str, bounds: dict[str, float]) -> dict[str, float]:
    """Mean and interval as columns of a table with several of them."""
    columns = {"mean": name, "low": f"{name}_low", "high": f"{name}_high"}
    return {columns[key]: value for key, value in bounds.items() if key in columns}


def by_depth(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Means over positions in each run, then over runs; position 0 sees itself only: it is apart.

    ``norm`` is a geometric mean, so that ``ln norm`` and ``log_gain`` are means of one kind.
    """
    table = table.assign(
        positions=np.where(table["position"] == 0, "first", "later"), log_norm=np.log(table["norm"])
    )
    where = ["arm", "placement", "positions", "depth", "site"]
    runs = table.groupby([*where, "seed"], sort=False)[["log_norm", "log_gain"]].mean()
    rows = []
    for row, group in split(runs.reset_index(), where):
        for name in ("log_norm", "log_gain"):
            bounds = describe(group[name], level)
            row.update(_named(name, bounds) | ({"n": bounds["n"]} if bounds["n"] else {}))
        rows.append(row)
    columns = "n log_norm log_norm_low log_norm_high log_gain log_gain_low log_gain_high"
    return pd.DataFrame(rows, columns=[*where, *columns.split()])


def by_arm(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Gains of the first block, of the later ones and of the last, as factors with intervals.

    Geometric means over positions but the first, over blocks (later: the gain of one block) and
    over runs. The first block lifts the embedding, which starts small, so it stands alone.
    """
    rows = []
    for row, runs in split(log_gains(table), ["arm", "placement"]):
        for part in PARTS:
            bounds = describe(runs[f"log_gain_{part}"], level)
            factors = {key: np.exp(value) for key, value in _named(part, bounds).items()}
            row.update(factors | ({"n": bounds["n"]} if bounds["n"] else {}))
        rows.append(row)
    bounds = [f"{part}{suffix}" for part in PARTS for suffix in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=["arm", "placement", "n", *bounds])


def log_gains(table: pd.DataFrame) -> pd.DataFrame:
    """A row per run: mean log-gain of the first block, of the later ones and of the last.

    Over positions but the first: columns ``log_gain_first``, ``log_gain_later``, ``log_gain_last``.
    """
    blocks = table[table["site"].str.startswith("block_") & (table["position"] > 0)]
    depth = blocks["depth"]
    parts = dict(zip(PARTS, (depth == 1, depth > 1, depth == depth.max()), strict=True))
    runs = [blocks[key] for key in KEYS]
    gains = {
        f"log_gain_{part}": blocks["log_gain"].where(rows).groupby(runs, sort=False).mean()
        for part, rows in parts.items()
    }
    return pd.DataFrame(gains).reset_index()


def is_covered(reference: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Whether ``ours`` has every setting of ``reference``, section by section."""
    return all(
        is_covered(value, ours[key]) if isinstance(value, Mapping) else ours[key] == value
        for key, value in reference.items()
    )
