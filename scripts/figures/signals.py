"""Figure signals: size of the stream and of the gradient, block by block, at the start."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.paper import style
from normscope.paper.drawing import Look, run
from normscope.statistics import summary
from normscope.studies.depth.figures import (
    COLORS,
    RESIDUAL,
    describe_sample,
    draw_band,
    legend_below,
    number_blocks,
    select,
)
from normscope.studies.depth.measures import PLACEMENTS, RELATIVE

MEASURES = {"activation_rms": "RMS of the stream", RELATIVE: "gradient, relative to the last"}
STARTS = {"gpt2": "-", "gpt2_flat": "--"}
DEEPEST = 2  # depths that are drawn
LOWEST = 1e-12  # what is below leaves the panel
PUBLISHED: dict = {"color": "0.55", "linestyle": ":", "linewidth": 1.5}


def draw_published(axis: Axes, depth: int, residual: bool) -> None:
    """The tutorial's curve, by the formulas that draw it, from the last block (1) to the first."""
    block = np.arange(1, depth + 1)
    passed = depth - block
    curve = 0.7 + 0.3 * 0.9**passed if residual else 0.8**passed
    axis.plot(block, curve, **PUBLISHED)


def draw_panel(axis: Axes, panel: pd.DataFrame) -> None:
    """A line per placement; says what lies below the panel."""
    below = []
    for placement in PLACEMENTS:
        for init, dashes in STARTS.items():
            line = summary.select(panel, placement=placement, init=init)
            if len(line):
                draw_band(axis, line, color=COLORS[placement], linestyle=dashes)
            if init == "gpt2" and (line["mean"] < LOWEST).any():
                below.append(f"{PLACEMENTS[placement]}: down to {line['mean'].min():.0e}")
    if below:
        axis.text(0.5, 0.03, "\n".join(below), transform=axis.transAxes, ha="center", fontsize=6)
    axis.set_yscale("log")
    known = panel[["mean", "low", "high"]].to_numpy().ravel()
    known = known[np.isfinite(known) & (known > 0)]  # one model has no interval
    if len(known):
        axis.set_ylim(max(known.min(), LOWEST) / 2, known.max() * 2)


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """The stream and the gradient by block."""
    table = select(tables["by_block"], *STARTS)
    table = table[(table["state"] == "start") & table["measure"].isin(list(MEASURES))]
    depths = sorted(set(table.loc[table["init"] == "gpt2", "depth"]))[-DEEPEST:]
    table = table[table["depth"].isin(depths)]
    columns = [(depth, residual) for residual in RESIDUAL for depth in depths]
    shape = len(MEASURES), max(1, len(columns))
    figure, axes = style.canvas(look.width_mm, 110, *shape, shared=False)
    for (measure, title), row in zip(MEASURES.items(), axes, strict=True):
        row[0].set_ylabel(title)
        for (depth, residual), axis in zip(columns, row, strict=False):
            shown = summary.select(table, depth=depth, residual=residual, measure=measure)
            draw_panel(axis, shown)
            if measure == RELATIVE:
                draw_published(axis, depth, residual)
                number_blocks(axis)
            else:
                axis.set_title(f"{depth} blocks,\n{RESIDUAL[residual]}")
    looks = {"as published: drawn": PUBLISHED}
    if "gpt2_flat" in set(table["init"]):
        looks["unscaled start"] = {"linestyle": "--"}
    legend_below(figure, table["placement"], looks, ncols=6)
    bands = f"bands: {look.level:.0%} t intervals of the logarithm over them."
    return figure, f"{describe_sample(table)}; {bands}"


if __name__ == "__main__":
    run(draw)
