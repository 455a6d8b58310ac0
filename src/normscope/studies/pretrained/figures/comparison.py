"""Figure comparison: gains of the last block, sorted, published and measured."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.studies.pretrained.figures import (
    MEASURED,
    NORMS,
    OTHER,
    PUBLISHED,
    count_prompts,
    draw_gain,
    gain_axis,
    list_models,
    model_labels,
)

MM_PER_ROW, MM_PER_PANEL = 5.5, 16
TITLES = "base models", "fine-tuned models"
MARKS: dict[str, dict] = {
    **{norm: {"color": color, "marker": "", "linestyle": "-"} for norm, color in NORMS.items()},
    "published": {"color": "0.4", "marker": PUBLISHED, "linestyle": ""},
    "measured": {"color": "0.4", "marker": MEASURED, "linestyle": ""},
    "arithmetic mean": {"color": "0.3", "marker": "|", "linestyle": ""},
}


def draw_row(axis: Axes, y: int, row: dict) -> None:
    """A model's geometric mean with its interval and number, and the arithmetic mean."""
    gain, low, high = np.exp([row["log_gain"], row["low"], row["high"]])
    axis.hlines(y, low, high, color=NORMS.get(row["norm"], OTHER), linewidth=1.4)
    draw_gain(axis, y, row)
    axis.plot(row["mean"], y, marker="|", markersize=7, color="0.3")
    axis.annotate(f"{gain:.3f}", (max(high, row["mean"]), y), (4, -2.5), textcoords="offset points")


def once(by_model: pd.DataFrame) -> pd.DataFrame:
    """Every model once as measured here and once as published, as it was published first."""
    is_measured = by_model["experiment"] == "measured"
    return by_model[~by_model.assign(here=is_measured).duplicated(["model", "here"])]


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Every model's gain as published and corrected, in order, fine-tuned models apart."""
    table = once(tables["by_model"]).sort_values("log_gain", ascending=False, ignore_index=True)
    is_tuned = table["base"].notna()
    panels = {title: table[kept] for title, kept in zip(TITLES, (~is_tuned, is_tuned), strict=True)}
    panels = {title: rows for title, rows in panels.items() if len(rows)}
    counts = [len(rows) for rows in panels.values()] or [1]
    figure, axes = style.stacked(look.width_mm, MM_PER_ROW, MM_PER_PANEL, counts)
    for axis, (title, rows) in zip(axes, panels.items(), strict=False):
        for y, row in enumerate(rows.to_dict("records")):
            draw_row(axis, y, row)
        style.baseline(axis, 1, vertical=True)
        style.name_rows(axis, model_labels(rows))
        axis.set_title(f"{title}, {style.sample_size(rows['n'])} prompts")
    for axis in axes:
        gain_axis(axis)
    for axis in axes[:-1]:
        axis.set_xlabel("")
    style.legend_below(figure, style.samples(axes[0], MARKS), ncols=5)
    return figure, f"n: {count_prompts(table)} of each model. {list_models(tables['models'])}"
