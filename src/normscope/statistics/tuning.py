"""Settings chosen by other seeds than those that are reported: leave one seed out."""

from collections.abc import Sequence

import pandas as pd


def chosen(
    table: pd.DataFrame, cell: Sequence[str], by: str, setting: str = "learning_rate"
) -> pd.DataFrame:
    """Of each cell and seed the model at the setting of least mean over the *other* seeds.

    So no seed is reported at a setting that it had a part in choosing. The mean is over seeds that
    have every setting; with one seed it is that seed's own. Ties go to the first setting.

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
            rows.append(group[(group["seed"] == seed) & (group[setting] == best)])
    return pd.concat(rows, ignore_index=True) if rows else table.head(0)
