"""Figure signals: size of the gradient, block by block, before training."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics import summary
from normscope.studies.depth.figures import COLORS, describe_sample, legend_below, select
from normscope.studies.depth.tables import INITS, LAYERS, RELATIVE

PANELS = (("gpt2", True), ("xavier", True), ("xavier", False))  # start, residual connections
DRAWN: dict = {"color": "0.4", "linestyle": ":", "linewidth": 1.4}  # the tutorial's curve
WIDTHS = dict(zip(PLACEMENTS, (2.4, 1.8, 1.2, 0.8, 2.0, 1.6, 1.0, 0.6), strict=True))
FIRST = 2  # the gradient of the first block may be far above all others


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One line per placement, at the greatest depth, with and without residual connections."""
    table = summary.select(tables["by_block"], state="start", measure=RELATIVE)
    table = select(table, "gpt2", "xavier")
    table = table[(table["depth"] == table["depth"].max()) & (table["block"] >= FIRST)]
    table = table[table["init"].eq("xavier") | table["residual"]].sort_values("block")
    figure, axes = style.canvas(look.width_mm, 80, 1, len(PANELS), shared=False)
    if table.empty:
        return figure, style.say(axes[0, 0], "no model was measured")
    for axis, (start, residual) in zip(axes[0], PANELS, strict=True):
        shown = summary.select(table, init=start, residual=residual)
        for placement in PLACEMENTS:
            line = summary.select(shown, placement=placement)
            color = {"color": COLORS[placement]}
            axis.plot(line["block"], line["mean"], linewidth=WIDTHS[placement], **color)
            ends = line["low"], line["high"]
            axis.fill_between(line["block"], *ends, alpha=0.25, linewidth=0, **color)
        # its layer is a sublayer, of which a block has two
        left = LAYERS["sublayer"] * (shown["block"].max() - shown["block"])
        axis.plot(shown["block"], 0.7 + 0.3 * 0.9**left if residual else 0.8**left, **DRAWN)
        style.log_y(axis)
        axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axis.set_xlabel("block")
        without = "" if residual else ",\nno residual connections"
        axis.set_title(f"{INITS[start]}{without}, {style.sample_size(shown['n'])}")
    axes[0, 0].set_ylabel("gradient, relative to that\nat the last block")
    legend_below(figure, table["placement"], {"as the tutorial draws it": DRAWN}, ncols=5)
    bands = f"bands: {look.level:.0%} t intervals of the logarithm over them."
    return figure, f"{describe_sample(table)}; {bands}"
