"""Figure signals: size of the stream and of the gradient, block by block, at the start."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics import summary
from normscope.studies.depth.figures import (
    RESIDUAL,
    describe_sample,
    draw_lines,
    legend_below,
    select,
)
from normscope.studies.depth.tables import INITS, LAYERS, RELATIVE

MEASURES = {
    "activation_rms": "RMS of the stream",
    RELATIVE: "gradient norm over\nthat at the last block",
}
STARTS = {"gpt2": "-", "gpt2_flat": "--", "xavier": "-"}
LOWEST = 1e-12  # what is below leaves the panel
ROOM = 1.5  # above and below what is drawn
PUBLISHED: dict[str, dict] = {
    "block": {"color": "0.7", "linestyle": ":", "linewidth": 1.0},
    "sublayer": {"color": "0.3", "linestyle": ":", "linewidth": 1.8},
    "matrix": {"color": "0.7", "linestyle": (0, (1, 3)), "linewidth": 1.0},
}


def draw_published(axis: Axes, depth: int, residual: bool) -> None:
    """The tutorial's curve, by the formulas that draw it, from the last block to the first.

    The tutorial's layer is a sublayer, as in its y = x + F(x): k blocks are 2 k layers. The factors
    that a layer would have as a block or a matrix are thinner.
    """
    block = np.arange(1, depth + 1)
    for layer, per_block in LAYERS.items():
        passed = per_block * (depth - block)
        curve = 0.7 + 0.3 * 0.9**passed if residual else 0.8**passed
        axis.plot(block, curve, **PUBLISHED[layer], label=f"as drawn, by {layer}")


def limits(panel: pd.DataFrame) -> tuple[float, float]:
    """What a panel spans: all that is drawn of these rows, but no less than the lowest."""
    known = panel[["mean", "low", "high"]].to_numpy().ravel()
    known = known[np.isfinite(known) & (known > 0)]  # one model has no interval
    return (max(known.min(), LOWEST) / ROOM, known.max() * ROOM) if len(known) else (0.1, 10)


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """The stream and the gradient by block."""
    table = summary.select(select(tables["by_block"], *STARTS), state="start")
    table = table[table["measure"].isin(list(MEASURES))]
    table = table[table["depth"] == table["depth"].max()]
    # an unscaled start is a line in the panels of its scaled one
    table = table.assign(panel=table["init"].str.removesuffix("_flat"))
    columns = [(s, r) for r in RESIDUAL for s in STARTS if (table["panel"] == s).any()]
    figure, axes = style.canvas(look.width_mm, 125, 2, max(1, len(columns)), shared=False)
    for (measure, title), row in zip(MEASURES.items(), axes, strict=True):
        row[0].set_ylabel(title)
        for (start, residual), axis in zip(columns, row, strict=False):
            shown = summary.select(table, panel=start, residual=residual, measure=measure)
            draw_lines(axis, shown, "init", STARTS)
            # the first block's gradient may be far above all others
            axis.set_ylim(*limits(shown[shown["block"] > (measure == RELATIVE)]))
            style.log_y(axis)
            if measure == RELATIVE:
                draw_published(axis, int(table["depth"].max()), residual)
            n = style.sample_size(shown["n"])
            axis.set_title(f"{INITS[start]},\n{RESIDUAL[residual]}\n{n}")
    looks = {f"as published, by {layer}": look for layer, look in PUBLISHED.items()}
    if "gpt2_flat" in set(table["init"]):
        looks["unscaled start"] = {"linestyle": "--"}
    legend_below(figure, table["placement"], looks, ncols=4)
    bands = f"bands: {look.level:.0%} t intervals of the logarithm over them."
    return figure, f"{describe_sample(table)}; {bands}"
