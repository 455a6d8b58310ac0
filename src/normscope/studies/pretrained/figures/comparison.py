"""Figure comparison: gains of the last block, sorted, published and measured."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.studies.pretrained.figures import (
    MARKS,
    count_prompts,
    draw_gains,
    gain_axis,
    list_models,
    model_labels,
)

MM_PER_ROW, MM_PER_PANEL = 5.5, 16
TITLES = "base models", "fine-tuned models"
MEAN: dict = {"marker": "|", "linestyle": "", "color": "0.3"}


def draw_panel(axis: Axes, table: pd.DataFrame) -> None:
    """Every model's geometric mean with its interval and number, and its arithmetic mean."""
    draw_gains(axis, table)
    axis.plot(table["mean"], np.arange(len(table)), markersize=7, **MEAN)
    ends = table[["mean"]].assign(high=np.exp(table["high"])).max(axis=1)
    for y, (end, gain) in enumerate(zip(ends, np.exp(table["log_gain"]), strict=True)):
        axis.annotate(f"{gain:.3f}", (end, y), (4, -2.5), textcoords="offset points")
    style.name_rows(axis, model_labels(table))


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
        draw_panel(axis, rows)
        axis.set_title(f"{title}, {style.sample_size(rows['n'])} prompts")
    for axis in axes:
        gain_axis(axis)
    for axis in axes[:-1]:
        axis.set_xlabel("")
    marks = MARKS | {"arithmetic mean": MEAN}
    style.legend_below(figure, style.samples(axes[0], marks), ncols=5)
    return figure, f"n: {count_prompts(table)} of each model. {list_models(tables['models'])}"
