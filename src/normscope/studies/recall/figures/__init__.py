"""What the figures of the recall test share."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from normscope.pages import style
from normscope.statistics.summary import geometric_mean
from normscope.statistics.tuning import commonest_setting
from normscope.studies.arms import count, describe_rate, divergences
from normscope.studies.recall.tabulate import KEYS


def draw_slices(axis: Axes, slices: pd.DataFrame, *, geometric: bool = False, **look) -> None:
    """The mean loss over directions and seeds, and their range."""
    losses = slices.groupby("alpha")["loss"]
    if losses.ngroups:
        mean = losses.agg(geometric_mean) if geometric else losses.mean()
        axis.plot(mean, **look)
        band = {"color": look["color"], "alpha": 0.15, "lw": 0}
        axis.fill_between(mean.index, losses.min(), losses.max(), **band)


def describe_arm(models: pd.DataFrame) -> str:
    """Sample size and learning rate of an arm's chosen models."""
    most = commonest_setting(models)
    rate = describe_rate(most["rate"], at_edge=most["at_edge"])
    return f"{style.sample_size([models['seed'].nunique()])} at {rate}"


def select_cells(table: pd.DataFrame, cells: Sequence[Sequence]) -> pd.DataFrame:
    """The rows of some cells (task, arm, learning rate), in the order of the cells."""
    return pd.DataFrame(cells, columns=KEYS).merge(table, on=KEYS, how="inner")


def describe_sample(runs: pd.DataFrame) -> str:
    """n of a caption, and what diverged."""
    by = ["arm", "task", "learning_rate"]
    rates = runs.groupby("task")["learning_rate"].nunique()
    many = "arms" if len(rates) == 1 and rates.iloc[0] == 1 else "pairs of arm and learning rate"
    return f"n: {count(runs, by, many)}. {divergences(runs, by)}"
