"""What the figures of the decisive test share."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from pydantic import Field
from pydantic_settings import CliPositionalArg

from normscope.paper import style
from normscope.paper.caption import FigureFlags, count, divergences
from normscope.studies.recall.tables import KEYS, ORDER, cell_key, factor_levels

AFFINE = {  # (gain, bias)
    ("no", "no"): "none",
    ("yes", "no"): "gain",
    ("no", "yes"): "bias",
    ("yes", "yes"): "both",
}
PANELS = (*ORDER["radius"], "other")


class PanelFlags(FigureFlags):
    """Flags of the figures with the notebook's three panels."""

    cells: CliPositionalArg[list[str]] = Field(description="task-arm-rate of what is drawn")
    runs: Path
    curves: Path
    slices: Path
    spectra: Path


def name_axes(axes: Iterable[Axes], *words: tuple[str, str, str]) -> None:
    """Title, x label and y label of each panel."""
    for axis, (title, x, y) in zip(axes, words, strict=True):
        axis.set_title(title)
        axis.set_xlabel(x)
        axis.set_ylabel(y)


def faceted(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with their factors, the panel (a radius, or "other") and the affine part."""
    table = runs.merge(factor_levels(list(runs["arm"])), on="arm", how="left")
    table["affine"] = [AFFINE.get(key) for key in zip(table["gain"], table["bias"], strict=True)]
    table["panel"] = table["radius"].fillna("other")
    return table


def of_cells(table: pd.DataFrame, cells: Sequence[str]) -> pd.DataFrame:
    """The rows of some cells, given by name, in the order of the names."""
    return pd.DataFrame([cell_key(cell) for cell in cells]).merge(table, on=KEYS, how="inner")


def n_of(runs: pd.DataFrame) -> str:
    """n of a caption, and what diverged."""
    by = ["arm", "task", "learning_rate"]
    rates = runs.groupby("task")["learning_rate"].nunique()
    many = "arms" if len(rates) == 1 and rates.iloc[0] == 1 else "pairs of arm and learning rate"
    return f"n: {count(runs, by, many)}. {divergences(runs, by)}"


def mark_divergence(axis: Axes, runs: pd.DataFrame, x: str = "diverged_at") -> None:
    """A cross at the top of a panel for every run that diverged, at its value of ``x``."""
    arms = list(runs["arm"])
    for r in runs[runs["diverged_at"].notna()].to_dict("records"):
        axis.plot(
            r[x],
            0.97,
            marker="x",
            color=style.look(r["arm"], arms)["color"],
            transform=axis.get_xaxis_transform(),
            clip_on=False,
        )
