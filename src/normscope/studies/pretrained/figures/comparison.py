"""Figure comparison: gains of the last block, sorted, published and measured."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.studies.arms import arm_look, family

# the colors of the arms
NORMS = {family(arm): arm_look(arm)["color"] for arm in ("layernorm", "rmsnorm")}
OTHER = "0.5"  # a norm that is neither
TICKS = (0.5, 0.7, 0.8, 1, 1.2, 1.5, 2, 2.5, 3, 5)
MM_PER_ROW, MM_PER_PANEL = 5.5, 16
TITLES = "base models", "fine-tuned models"
MARKERS = {"published": "D", "measured": "P"}  # where a model's prompts were measured


def draw_panel(axis: Axes, table: pd.DataFrame) -> None:
    """One row per model: its geometric mean with the interval over prompts, and its number."""
    for y, row in enumerate(table.to_dict("records")):
        look: dict = {"color": NORMS.get(row["norm"], OTHER)}
        gain, low, high = np.exp([row["log_gain"], row["low"], row["high"]])
        axis.hlines(y, low, high, linewidth=1.4, **look)
        marker = MARKERS["measured" if row["experiment"] == "measured" else "published"]
        axis.plot(gain, y, marker=marker, markersize=3.5, linestyle="", **look)
        axis.annotate(f"{gain:.2f}", (high, y), (4, -2.5), textcoords="offset points")
    style.baseline(axis, 1, vertical=True)
    style.name_rows(axis, list(table["model"]))
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()


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
    figure, axes = style.panel_column(look.width_mm, MM_PER_ROW, MM_PER_PANEL, counts)
    for axis, (title, rows) in zip(axes, panels.items(), strict=False):
        draw_panel(axis, rows)
        axis.set_title(f"{title}, {style.sample_size(rows['n'])} prompts")
    axes[-1].set_xlabel("gain of the last block")
    looks: dict[str, dict] = {norm: {"color": color} for norm, color in NORMS.items()}
    looks |= {
        name: {"color": "0.4", "marker": marker, "linestyle": ""}
        for name, marker in MARKERS.items()
    }
    style.legend_below(figure, style.samples(axes[0], looks), ncols=4)
    return figure, f"{style.sample_size(table['n'])} prompts of each model."
