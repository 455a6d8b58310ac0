"""Figure comparison: gains of the last block, sorted, published and measured."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.paper import style
from normscope.paper.drawing import Look
from normscope.studies.pretrained.figures import (
    NORMS,
    OTHER,
    count_prompts,
    draw_gain,
    gain_axis,
    list_models,
    model_labels,
)

MM_PER_ROW, REST_MM = 5.5, 30
MARKS: dict[str, dict] = {
    **{norm: {"color": color, "marker": "", "linestyle": "-"} for norm, color in NORMS.items()},
    "published": {"color": "0.4", "marker": "o", "mfc": "none", "linestyle": ""},
    "measured": {"color": "0.4", "marker": "o", "linestyle": ""},
    "arithmetic mean": {"color": "0.3", "marker": "|", "linestyle": ""},
}


def draw_row(axis: Axes, y: int, row: dict) -> None:
    """A model's geometric mean with its interval and number, and the arithmetic mean."""
    gain, low, high = np.exp([row["log_gain"], row["low"], row["high"]])
    axis.hlines(y, low, high, color=NORMS.get(row["norm"], OTHER), linewidth=1.4)
    draw_gain(axis, y, row, marker="o")
    style.points(axis, row["mean"], y, "arithmetic mean", marker="|", markersize=7, color="0.3")
    axis.annotate(f"{gain:.3f}", (high, y), (4, -2.5), textcoords="offset points")


def once(by_model: pd.DataFrame) -> pd.DataFrame:
    """Every model once as measured here and once as published, as it was published first."""
    is_measured = by_model["experiment"] == "measured"
    return by_model[~by_model.assign(here=is_measured).duplicated(["model", "here"])]


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Every model's gain as published and corrected, in order."""
    table = once(tables["by_model"]).sort_values("log_gain", ignore_index=True)
    height = MM_PER_ROW * len(table) + REST_MM
    figure, axes = style.canvas(look.width_mm, height, 1, 1, shared=False)
    axis = axes[0, 0]
    style.baseline(axis, 1, vertical=True)
    for y, row in enumerate(table.to_dict("records")):
        draw_row(axis, y, row)
    gain_axis(axis)
    style.place(axis.yaxis, range(len(table)), model_labels(table))
    axis.set_title("models in order")
    style.legend_below(figure, style.samples(axis, MARKS), ncols=5)
    return figure, f"n: {count_prompts(table)} of each model. {list_models(tables['models'])}"
