"""What the figures of signals and gradients by depth share."""

import itertools
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.statistics import summary

NORM = "layernorm"  # the tutorial's
_INDEX = (1, 2, 3, 0, 4, 5, 6)
COLORS = dict(zip(PLACEMENTS, (*(style.COLORS[i] for i in _INDEX), "0.5"), strict=True))
# what coincides shows
WIDTHS = dict(zip(PLACEMENTS, (2.4, 1.8, 1.2, 0.8, 2.0, 1.6, 1.0, 0.6), strict=True))
RESIDUAL = {True: "with residuals", False: "without residuals"}


def select(table: pd.DataFrame, *starts: str) -> pd.DataFrame:
    """The rows of the tutorial's norm and of no norm, at these starts."""
    return table[table["arm"].isin([NORM, "none"]) & table["init"].isin(starts)]


def draw_lines(axis: Axes, panel: pd.DataFrame, column: str, looks: Mapping[str, Any]) -> None:
    """Means by block with their intervals over models: a line per placement and value of a column.

    Args:
        axis: the panel.
        panel: rows of by_block.csv.
        column: whose values have different lines.
        looks: line styles by value.
    """
    for placement, (value, linestyle) in itertools.product(PLACEMENTS, looks.items()):
        line = summary.select(panel, placement=placement, **{column: value}).sort_values("block")
        look: dict = {"color": COLORS[placement], "linewidth": WIDTHS[placement]}
        axis.plot(line["block"], line["mean"], linestyle=linestyle, **look)
        band: dict = {"color": COLORS[placement], "alpha": 0.25, "linewidth": 0}
        axis.fill_between(line["block"], line["low"], line["high"], **band)
    axis.set_xlabel("block")
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def legend_below(
    figure: Figure, placements: pd.Series, looks: Mapping[str, dict], ncols: int
) -> None:
    """The placements that are there, in one order, and what else there is, grey."""
    handles: dict[str, Artist] = {
        label: Line2D([], [], color=COLORS[name])
        for name, label in PLACEMENTS.items()
        if name in set(placements)
    }
    grey: dict = {"color": "0.4"}
    handles |= {label: Line2D([], [], **grey | look) for label, look in looks.items()}
    style.legend_below(figure, handles, ncols)


def describe_sample(table: pd.DataFrame) -> str:
    """n of a caption: how many models stand behind a mean."""
    counts = sorted(set(table["n"]))
    if not counts:
        return "No model was measured."
    least, most = counts[0], counts[-1]
    many = f"{least}" if least == most else f"{least} to {most}"
    return f"n: {many} model{'s' if most != 1 else ''} (seeds) behind every mean"
