"""Figure removed_blocks: the loss that a model gains without one of its blocks."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from normscope.nn.arms import ARMS
from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import split
from normscope.studies.main.figures import DOTS, LOOKS

MM_PER_PANEL, LEGEND_MM = 62, 15
LINEAR = 0.1  # nats up to which the axis is linear
FREE = 0.05
WIDTH = 0.7  # blocks over which the placements are dodged
ROOM = 1.3  # of the axis beyond the smallest and the largest loss


def draw_panel(axis: Axes, blocks: pd.DataFrame) -> None:
    """One series per placement: every model, and medians over models."""
    kinds = list(split(blocks, ["placement"]))
    for i, (kind, rows) in enumerate(kinds):
        shown = LOOKS[kind["placement"]]
        x = rows["block"] + style.dodge(i, len(kinds), WIDTH)
        line: dict = shown | {"marker": ""}
        axis.plot(rows["added_loss"].groupby(x).median(), **line)
        axis.plot(x, rows["added_loss"], **shown | DOTS)
        axis.plot([], [], label=PLACEMENTS[kind["placement"]], mfc="none", **shown)
    axis.axhline(FREE, color="0.6", linestyle=":", linewidth=0.8)
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set_xlabel("block")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One panel per protocol and norm of the deepest models: added loss by block and placement."""
    blocks = tables["blocks"]
    deepest = blocks["block"].max()
    blocks = blocks[blocks.groupby("protocol")["block"].transform("max") == deepest]
    panels = list(split(blocks, ["protocol", "arm"]))
    most = 2 if len(panels) <= 6 else 3  # three lines of panels fill a page
    figure, axes = style.wrapped(
        look.width_mm, MM_PER_PANEL, LEGEND_MM, max(1, len(panels)), most=most
    )
    if not panels:
        axes[0, 0].set_title("added losses")
        return figure, style.say(axes[0, 0], "no model was measured")
    style.share_y(axes[:, 0])
    for (cell, rows), axis in zip(panels, axes[:, 0], strict=True):
        draw_panel(axis, rows)
        n = style.sample_size(rows.groupby("placement")["seed"].nunique())
        axis.set_title(f"{cell['protocol']}, {ARMS[cell['arm']].label}, {n}")
        if style.is_first(axis):
            axis.set_ylabel("added loss (nats)")
    least, most = min(0.0, blocks["added_loss"].min()), max(2 * FREE, blocks["added_loss"].max())
    axes[0, 0].set_ylim(ROOM * least - FREE / 2, ROOM * most)
    for axis in axes[:, 0]:
        style.symlog(axis, LINEAR, vertical=True)
    style.legend_below(figure, style.labelled(figure.axes), ncols=4)
    return figure, f"Models of {deepest} blocks."
