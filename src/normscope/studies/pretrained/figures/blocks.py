"""Figure blocks: the gain of every block of every measured model, by position and BOS."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.pretrained.figures import (
    NOTHING,
    count_prompts,
    list_models,
    model_looks,
)
from normscope.studies.pretrained.measures import BOS, POSITIONS

SINK = 10  # a gain above it at the first position makes it an attention sink


def name_sink(axis: Axes, panel: pd.DataFrame) -> None:
    """Where the first position's stream is blown up: block, gain, and model if there are more."""
    if panel.empty:
        return
    peak = panel.nlargest(1, "log_gain").iloc[0]
    if np.exp(peak["log_gain"]) < SINK:
        return
    block, gain = peak["depth"] - 1, np.exp(peak["log_gain"])
    whose = f"{peak['model']}, " if panel["model"].nunique() > 1 else ""
    side = 1 if block < panel["depth"].max() / 2 else -1
    axis.annotate(
        f"attention sink: {whose}block {block},\nthe norm times {gain:.0f}",
        (block, gain),
        (8 * side, 0),
        textcoords="offset points",
        ha="left" if side > 0 else "right",
        va="top",
    )


def draw_panel(axis: Axes, panel: pd.DataFrame, looks: Mapping[str, dict]) -> None:
    """One line per model with the band of its interval over prompts."""
    for model, line in panel.groupby("model", sort=False):
        color, depth = looks[str(model)]["color"], line["depth"] - 1
        gain, low, high = (np.exp(line[k]) for k in ("log_gain", "low", "high"))
        dashes = style.LINES[list(looks).index(str(model)) // len(style.COLORS) % 5]
        axis.plot(depth, gain, color=color, ls=dashes, label=str(model))
        axis.fill_between(depth, low, high, color=color, alpha=0.25, linewidth=0)
    if panel.empty:
        style.say(axis, NOTHING)
    else:
        style.log_y(axis)
    style.baseline(axis, 1)


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Gains by depth."""
    layers = tables["layers"]
    layers = layers[layers["site"].str.startswith("block_") & (layers["depth"] > 1)]
    looks = model_looks(list(layers["model"]))
    figure, axes = style.canvas(look.width_mm, 130, len(POSITIONS), len(BOS))
    for row, positions in zip(axes, POSITIONS, strict=True):
        row[0].set_ylabel(f"gain, {positions} position{'s' if positions == 'later' else ''}")
        for axis, bos in zip(row, BOS, strict=True):
            panel = select(layers, positions=positions, bos=bos)
            draw_panel(axis, panel, looks)
            axis.set_title(f"{BOS[bos]}, {style.sample_size(panel['n'])} prompts of each model")
            if positions == "first":
                name_sink(axis, panel)
    for bottom in axes[-1]:
        bottom.set_xlabel("block")
    style.legend_below(figure, style.labelled([axes[-1, 0]]), ncols=4)
    return figure, (
        f"n: {count_prompts(layers)} of each model; bands: {look.level:.0%} t interval over "
        f"prompts. {list_models(tables['models'])}"
    )
