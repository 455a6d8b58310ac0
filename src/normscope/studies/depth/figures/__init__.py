"""What the figures of signals and gradients by depth share."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style

NORM = "layernorm"  # the tutorial's
_INDEX = (1, 2, 3, 0, 4, 5, 6)
COLORS = dict(zip(PLACEMENTS, (*(style.COLORS[i] for i in _INDEX), "0.5"), strict=True))


def select(table: pd.DataFrame, *starts: str) -> pd.DataFrame:
    """The rows of the tutorial's norm and of no norm, at these starts."""
    return table[table["arm"].isin([NORM, "none"]) & table["init"].isin(starts)]


def legend_below(
    figure: Figure, placements: pd.Series, looks: Mapping[str, dict], ncols: int
) -> None:
    """The placements that are there, in one order, and what else there is, gray."""
    handles: dict[str, Artist] = {
        label: Line2D([], [], color=COLORS[name])
        for name, label in PLACEMENTS.items()
        if name in set(placements)
    }
    gray: dict = {"color": "0.4"}
    handles |= {label: Line2D([], [], **gray | look) for label, look in looks.items()}
    style.legend_below(figure, handles, ncols)


def describe_sample(table: pd.DataFrame) -> str:
    """n of a caption: how many models stand behind a mean."""
    if table.empty:
        return "No model was measured."
    return f"{style.sample_size(table['n'])} models (seeds) behind every mean"
