"""Choice of a setting: by pilot models, or without them by leave-one-seed-out."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

LOSS, EDGE = "pilot_loss", "pilot_edge"  # of the pilot models at a row's setting


def choose(
    table: pd.DataFrame,
    cell: Sequence[str],
    by: str,
    setting: str | Sequence[str] = "learning_rate",
    seed: str = "seed",
) -> pd.DataFrame:
    """For each cell and seed, the model at the setting that was chosen for it.

    If pilot models are known of every setting of a cell (columns ``pilot_loss`` and
    ``pilot_edge``), it is the setting with their lowest loss. Otherwise it is the one with the
    lowest mean over the *other* seeds: no seed takes part in choosing the setting at which it is
    reported, but the choices share data, and a test of these models exceeds its level. That mean is
    over seeds that have every setting, and infinite if a value is NaN; a seed without such others
    chooses for itself. Ties go to the first setting. ``at_edge``: the setting is one column, and
    its value the smallest or the largest of three or more, so that the best may lie outside.

    Args:
        table: One row per model, with the columns of a cell, the seed, the setting and ``by``.
        cell: The columns that identify a cell; with none, the table is one cell.
        by: The column to minimize.
        setting: The column or columns to choose.
        seed: The column that identifies replicates.
    """
    settings = [setting] if isinstance(setting, str) else list(setting)
    groups = [group for _, group in table.groupby(list(cell), sort=False)] if cell else [table]
    rows = [_chosen_in_cell(group, by, settings, seed) for group in groups if len(group)]
    return pd.concat(rows, ignore_index=True) if rows else table.head(0).assign(at_edge=False)


def _chosen_in_cell(
    table: pd.DataFrame, by: str, settings: Sequence[str], seed: str
) -> pd.DataFrame:
    """One row per seed of a cell, in the order of the seeds."""
    if EDGE in table and table[EDGE].notna().all():
        losses = table[LOSS].astype(float).fillna(math.inf)  # of a setting, the same in all rows
        best = table[list(settings)].iloc[int(losses.to_numpy().argmin())]
        picked = table[(table[list(settings)] == best).all(axis=1)]
        return picked.sort_values(seed, kind="stable").assign(at_edge=picked[EDGE].astype(bool))
    index = table.groupby(
        list(settings), sort=False, dropna=False
    ).ngroup()  # numbers in order of appearance
    values = table.assign(_setting=index, **{by: table[by].astype(float).fillna(math.inf)})
    losses = values.pivot(index=seed, columns="_setting", values=by)
    complete = losses.dropna()
    if len(settings) == 1 and losses.shape[1] > 2:
        tried = table[settings[0]]
        edges = {index[tried == tried.min()].iloc[0], index[tried == tried.max()].iloc[0]}
    else:
        edges = set()
    rows = []
    for replicate in losses.index:
        others = complete.drop(index=replicate, errors="ignore")
        means = (others if len(others) else losses.loc[[replicate]]).mean()
        best = means[losses.loc[replicate].notna()].idxmin()
        at_best = table[(table[seed] == replicate) & (index == best)]
        rows.append(at_best.assign(at_edge=best in edges))
    return pd.concat(rows)


def commonest_setting(rows: pd.DataFrame, setting: str = "learning_rate") -> dict[str, Any]:
    """``rate``: the setting of most seeds, and whether it is ``at_edge``.

    Args:
        rows: The rows of one cell, from ``chosen``.
        setting: The column that was chosen.
    """
    rate = rows[setting].mode().iloc[0]
    return {"rate": rate, "at_edge": bool(rows.loc[rows[setting] == rate, "at_edge"].iloc[0])}
