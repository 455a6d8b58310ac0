"""Tables of means: n, mean and interval of measures by group."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from normscope.statistics.estimate import estimate

BOUNDS = ["n", "mean", "low", "high"]


def select(table: pd.DataFrame, **values: object) -> pd.DataFrame:
    """The rows in which these columns have these values."""
    chosen = np.ones(len(table), dtype=bool)
    for column, value in values.items():
        chosen &= np.asarray(table[column] == value, dtype=bool)
    return table[chosen]


def split(table: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Every group of a table, in the order of the table, with the values that its rows share."""
    for key, group in table.groupby(list(by), sort=False):
        yield dict(zip(by, key, strict=True)), group


def describe(values: Iterable[float], level: float, *, geometric: bool = False) -> dict[str, float]:
    """n, mean, low and high: mean and Student's t interval.

    Args:
        values: one per model; values that are not finite are left out, and for a geometric mean
            those that are not positive.
        geometric: means of logarithms, given back as sizes.

    Returns:
        ``n`` alone where no value is left; NaN for the bounds of one value.
    """
    known = [v for v in values if np.isfinite(v) and (v > 0 or not geometric)]
    if not known:
        return {"n": 0}
    e = estimate(list(np.log(known)) if geometric else known, level)
    back = np.exp if geometric else float
    return {"n": e.n, "mean": back(e.mean), "low": back(e.low), "high": back(e.high)}


def paired_difference(pairs: Iterable[float], level: float) -> dict[str, float]:
    """The mean of differences between models with the same seed, and the ends of its t interval.

    Returns:
        ``difference``, ``difference_low`` and ``difference_high``; nothing without a pair.
    """
    bounds = describe(pairs, level)
    names = {"mean": "difference", "low": "difference_low", "high": "difference_high"}
    return {name: bounds[key] for key, name in names.items() if key in bounds}


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of positive values on a logarithmic scale; others are left out, NaN if none is."""
    known = [v for v in values if np.isfinite(v) and v > 0]
    return float(np.exp(np.mean(np.log(known)))) if known else np.nan


def summarize(
    table: pd.DataFrame,
    by: Sequence[str],
    measures: Iterable[str],
    level: float,
    geometric: Collection[str] = (),
) -> pd.DataFrame:
    """One row per group and measure, in the order of the table: n models, mean and t interval.

    Args:
        by: columns of a group.
        measures: columns to average.
        geometric: measures whose mean is geometric.

    Returns:
        Columns ``by``, measure, n, mean, low, high; n is 0 where a group has no value.
    """
    rows = [
        {**key, "measure": measure}
        | describe(group[measure], level, geometric=measure in geometric)
        for key, group in split(table, by)
        for measure in measures
    ]
    return pd.DataFrame(rows, columns=[*by, "measure", *BOUNDS])
