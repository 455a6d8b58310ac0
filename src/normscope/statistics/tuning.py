"""Settings chosen by other seeds than those that are reported: leave one seed out."""

from collections.abc import Sequence
from typing import Any

import pandas as pd


def chosen(
    table: pd.DataFrame, cell: Sequence[str], by: str, setting: str = "learning_rate"
) -> pd.DataFrame:
    """Of each cell and seed the model at the setting of least mean over the *other* seeds.

    So no seed is reported at a setting that it had a part in choosing. The mean is over seeds that
    have every setting; with one seed it is that seed's own. Ties go to the first setting.
    ``at_edge``: the setting is the least or the greatest of three or more, so that the best may lie
    beyond.

    Args:
        table: a row a model, with the columns of a cell, ``seed``, the setting and ``by``.
        cell: columns that are compared.
        by: what is least; a number for every model, also for one that diverged.
        setting: column of what is chosen.
    """
    rows = []
    for _, group in table.groupby(list(cell), sort=False):
        at = group.pivot(index="seed", columns=setting, values=by)[group[setting].unique()]
        complete = at.dropna()
        for seed, own in at.iterrows():
            others = complete.drop(index=seed, errors="ignore")
            means = (others if len(others) else at.loc[[seed]]).mean()
            best = means[own.notna()].idxmin()
            is_edge = len(means) > 2 and best in (means.index.min(), means.index.max())
            own_best = group[(group["seed"] == seed) & (group[setting] == best)]
            rows.append(own_best.assign(at_edge=is_edge))
    return pd.concat(rows, ignore_index=True) if rows else table.head(0).assign(at_edge=False)


def commonest_setting(rows: pd.DataFrame, setting: str = "learning_rate") -> dict[str, Any]:
    """``rate``: the setting of most seeds, and whether it is ``at_edge``.

    Args:
        rows: of ``chosen``, of one cell.
        setting: column of what was chosen.
    """
    rate = rows[setting].mode().iloc[0]
    return {"rate": rate, "at_edge": bool(rows.loc[rows[setting] == rate, "at_edge"].iloc[0])}
