"""Choice of a setting by leave-one-seed-out."""

from collections.abc import Sequence
from typing import Any

import pandas as pd


def chosen(
    table: pd.DataFrame, cell: Sequence[str], by: str, setting: str = "learning_rate"
) -> pd.DataFrame:
    """For each cell and seed, the model at the setting with the lowest mean over the *other* seeds.

    No seed takes part in choosing the setting at which it is reported. The mean is over seeds that
    have every setting; a single seed chooses for itself. Ties go to the first setting.
    ``at_edge``: the setting is the smallest or the largest of three or more, so that the best may
    lie outside.

    Args:
        table: one row per model, with the columns of a cell, ``seed``, the setting and ``by``.
        cell: columns that are compared.
        by: column to minimize; a number for every model, also for one that diverged.
        setting: column to choose.
    """
    rows = []
    for _, group in table.groupby(list(cell), sort=False):
        at = group.pivot(index="seed", columns=setting, values=by)[group[setting].unique()]
        complete = at.dropna()
        for seed, losses in at.iterrows():
            others = complete.drop(index=seed, errors="ignore")
            means = (others if len(others) else at.loc[[seed]]).mean()
            best = means[losses.notna()].idxmin()
            is_edge = len(means) > 2 and best in (means.index.min(), means.index.max())
            at_best = group[(group["seed"] == seed) & (group[setting] == best)]
            rows.append(at_best.assign(at_edge=is_edge))
    return pd.concat(rows, ignore_index=True) if rows else table.head(0).assign(at_edge=False)


def commonest_setting(rows: pd.DataFrame, setting: str = "learning_rate") -> dict[str, Any]:
    """``rate``: the setting of most seeds, and whether it is ``at_edge``.

    Args:
        rows: of one cell, from ``chosen``.
        setting: the column that was chosen.
    """
    rate = rows[setting].mode().iloc[0]
    return {"rate": rate, "at_edge": bool(rows.loc[rows[setting] == rate, "at_edge"].iloc[0])}
