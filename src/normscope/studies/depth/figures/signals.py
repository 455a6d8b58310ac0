"""Figure signals: size of the stream and of the gradient, block by block, at the start."""

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.pages.drawing import Look
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
from normscope.studies.depth.measures import LAYERS, RELATIVE

MEASURES = {
    "activation_rms": "RMS of the stream",
    RELATIVE: "gradient norm over\nthat at the last block",
}
STARTS = {"gpt2": "-", "gpt2_flat": "--", "xavier": "-"}
PANELS = {"gpt2": "GPT-2's start", "xavier": "Xavier's start"}
LOWEST = 1e-12  # what is below leaves the panel
APART = 5  # times all others: block 1 is drawn apart
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


def draw_first(axis: Axes, first: pd.DataFrame) -> None:
    """Block 1 in a corner of a panel that begins with block 2."""
    inset = axis.inset_axes((0.62, 0.5, 0.36, 0.36))
    shown = [name for name in PLACEMENTS if (first["placement"] == name).any()]
    for i, placement in enumerate(shown):
        models = summary.select(first, placement=placement)
        dots: dict = {"marker": "o", "linestyle": "", "color": COLORS[placement], "markersize": 3}
        inset.plot([i] * len(models), models["mean"], **dots)
    inset.set_xticks(range(len(shown)), [""] * len(shown))
    inset.tick_params(bottom=False, labelbottom=False)
    inset.set_xlim(-0.6, len(shown) - 0.4)
    inset.set_ylim(first["mean"].min() / 3, first["mean"].max() * 3)
    inset.set_title("block 1", fontsize="small", pad=2)
    inset.tick_params(labelsize="small")
    style.log_y(inset)


def limits(panel: pd.DataFrame) -> tuple[float, float]:
    """What a panel spans: all that is drawn, but no less than the lowest."""
    known = panel[["mean", "low", "high"]].to_numpy().ravel()
    known = known[np.isfinite(known) & (known > 0)]  # one model has no interval
    return (max(known.min(), LOWEST) / ROOM, known.max() * ROOM) if len(known) else (0.1, 10)


def draw_panel(axis: Axes, panel: pd.DataFrame, *, apart: bool) -> list[str]:
    """One line per placement, a triangle where it leaves the panel; the lowest values.

    Args:
        axis: the panel.
        panel: rows of by_block.csv.
        apart: whether block 1 is drawn apart if it is far above all others.
    """
    below = []
    for placement, init in itertools.product(PLACEMENTS, STARTS):
        line = summary.select(panel, placement=placement, init=init).sort_values("block")
        if line.empty:
            continue
        draw_band(axis, line, placement, linestyle=STARTS[init])
        lost = line.loc[line["mean"] < LOWEST, "block"]
        if len(lost):
            at = lost.min() if lost.max() == line["block"].max() else lost.max()
            look: dict = {"color": COLORS[placement], "mfc": "white", "clip_on": False}
            look |= {"marker": "v", "linestyle": "", "transform": axis.get_xaxis_transform()}
            axis.plot(at, 0.0, **look)
            if init in PANELS:
                below.append(f"{PLACEMENTS[placement]} {line['mean'].min():.0e}")
    rest = panel[panel["block"] > 1]
    if apart and panel["mean"].max() > APART * rest["mean"].max():
        draw_first(axis, panel[(panel["block"] == 1) & panel["init"].isin(list(PANELS))])
        panel = rest
    axis.set_ylim(*limits(panel))
    style.log_y(axis)
    return below


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """The stream and the gradient by block."""
    table = select(tables["by_block"], *STARTS)
    table = table[(table["state"] == "start") & table["measure"].isin(list(MEASURES))]
    table = table[table["depth"] == table["depth"].max()]
    panel = table["init"].str.removesuffix("_flat")
    columns = [
        (start, residual) for residual in RESIDUAL for start in PANELS if (panel == start).any()
    ]
    shape = len(MEASURES), max(1, len(columns))
    figure, axes = style.canvas(look.width_mm, 125, *shape, shared=False)
    lost = []
    for (measure, title), row in zip(MEASURES.items(), axes, strict=True):
        row[0].set_ylabel(title)
        for (start, residual), axis in zip(columns, row, strict=False):
            shown = summary.select(table[panel == start], residual=residual, measure=measure)
            below = draw_panel(axis, shown, apart=residual and measure == RELATIVE)
            if measure == RELATIVE:
                draw_published(axis, int(table["depth"].max()), residual)
            number_blocks(axis)
            n = style.sample_size(shown["n"])
            axis.set_title(f"{PANELS[start]},\n{RESIDUAL[residual]}\n{n}")
            if below:
                lost.append(f"{' '.join(title.split())}, {PANELS[start]}: {', '.join(below)}")
    looks = {f"as published, by {layer}": look for layer, look in PUBLISHED.items()}
    if "gpt2_flat" in set(table["init"]):
        looks["unscaled start"] = {"linestyle": "--"}
    legend_below(figure, table["placement"], looks, ncols=4)
    bands = f"bands: {look.level:.0%} t intervals of the logarithm over them."
    ends = f" Triangles, the least mean below the panel: {'; '.join(lost)}." if lost else ""
    return figure, f"{describe_sample(table)}; {bands}{ends}"
