"""Figure loss: validation loss by arm and placement, every seed a point."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.paper import style
from normscope.paper.caption import count, divergences
from normscope.paper.drawing import Look, run
from normscope.statistics.summary import select
from normscope.studies.main.figures import arm_label

MM_PER_ROW, PAGE_MM = 6, 230
NEAR = (0.98, 1.06)  # what the right panel shows, as a share of the baseline's loss


def draw_rows(
    axis: Axes, rows: list[tuple[str, str]], runs: pd.DataFrame, arms: pd.DataFrame
) -> None:
    """A line of markers for each arm and placement, with mean and interval where n > 1."""
    for y, (arm, placement) in enumerate(rows):
        look: dict = style.arm_look(arm, list(runs["arm"])) | {"linestyle": ""}
        losses = select(runs, arm=arm, placement=placement)["val_loss"].dropna()
        axis.plot(losses, np.full(len(losses), y), markerfacecolor="none", **look)
        cell = select(arms, arm=arm, placement=placement).iloc[0]
        if cell["n"] > 1:
            axis.plot([cell["low"], cell["high"]], [y, y], color=look["color"], linewidth=1)
            axis.plot([cell["mean"]] * 2, [y - 0.35, y + 0.35], color=look["color"], linewidth=1.6)
        if not len(losses):
            axis.text(0.02, y, "diverged", transform=axis.get_yaxis_transform(), va="center")
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.grid(axis="x", linewidth=0.3, color="0.85")
    axis.set_axisbelow(True)


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, baseline: Mapping[str, str]
) -> tuple[Figure, str]:
    """All losses, and on the right those around the baseline's, an arm and a placement."""
    runs, arms = tables["runs"], tables["arms"]
    cells = set(zip(runs["arm"], runs["placement"], strict=True))
    placements = list(dict.fromkeys(runs["placement"]))
    grid = [(a, p) for a in style.in_order(list(runs["arm"])) for p in placements]
    rows = [cell for cell in grid if cell in cells]
    figure, axes = style.canvas(look.width_mm, min(20 + MM_PER_ROW * len(rows), PAGE_MM), 1, 2)
    for axis in axes[0]:
        draw_rows(axis, rows, runs, arms)
    axes[0, 0].set_yticks(range(len(rows)), [arm_label(*cell) for cell in rows])
    loss = select(arms, **baseline)["mean"].iloc[0]
    near = ""
    if np.isfinite(loss):
        axes[0, 1].set_xlim(NEAR[0] * loss, NEAR[1] * loss)
        near = f"Right: the same from {NEAR[0] * loss:.2f} to {NEAR[1] * loss:.2f}."
    figure.supxlabel("validation loss (nats per character, whole split)", fontsize=look.font_pt)
    bars = f"Bars: {look.level:.0%} t interval and mean, where n > 1."
    return figure, f"{near} n: {count(runs)}. {bars} {divergences(runs)}"


if __name__ == "__main__":
    run(draw)
