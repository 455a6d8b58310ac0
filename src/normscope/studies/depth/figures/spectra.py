"""Figure spectra: extreme singular values of the blocks' Jacobians, block by block."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics import summary
from normscope.studies.depth.figures import COLORS, describe_sample, legend_below, select

ENDS: dict[str, dict] = {
    "largest": {"marker": "^", "linestyle": ""},
    "smallest": {"marker": "v", "linestyle": "", "mfc": "white"},
}
STATES = {"start": "before training", "trained": "trained"}
WIDTH = 0.5  # blocks over which placements are dodged
ZERO = 3e-3  # the floor, where what is below is drawn


def draw_spectra(axis: Axes, panel: pd.DataFrame) -> None:
    """Largest and smallest singular value of each block, side by side; the floor is marked."""
    style.baseline(axis, 1)
    axis.axhline(ZERO, color="0.6", linewidth=0.6, linestyle=":")
    blocks = sorted(set(panel["block"]))
    shown = [name for name in PLACEMENTS if (panel["placement"] == name).any()]
    for (placement, end), line in panel.groupby(["placement", "measure"], sort=False):
        color = COLORS[str(placement)]
        shift = style.dodge(shown.index(str(placement)), len(shown), WIDTH)
        x = line["block"].map(blocks.index) + shift
        mean, low, high = (line[k].clip(lower=ZERO) for k in ("mean", "low", "high"))
        axis.vlines(x, low, high, color=color, linewidth=0.8)
        axis.plot(x, mean, color=color, **ENDS[str(end)])
    axis.set_xticks(range(len(blocks)), [str(block) for block in blocks])
    axis.set_xlabel("block")
    axis.set_xlim(-0.5, max(1, len(blocks)) - 0.5)
    axis.set_yscale("log")
    axis.set_ylim(bottom=ZERO / 1.6)


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One panel per state of the deepest networks with residual connections."""
    table = summary.select(select(tables["by_block"], "gpt2"), residual=True)
    table = table[table["measure"].isin(list(ENDS))]
    table = table[table["depth"] == table.groupby("state")["depth"].transform("max")]
    states = [state for state in STATES if (table["state"] == state).any()]
    figure, axes = style.canvas(look.width_mm, 75, 1, max(1, len(states)))
    axes[0, 0].set(title="singular values", ylabel="singular values\nof a block")
    for state, axis in zip(states, axes[0], strict=False):
        shown = summary.select(table, state=state)
        draw_spectra(axis, shown)
        blocks = f"{shown['depth'].max()} blocks, {STATES[state]}"
        axis.set_title(f"{blocks}, {style.sample_size(shown['n'])}")
    looks = ENDS | {"floor: that or less": {"linestyle": ":"}}
    legend_below(figure, table["placement"], looks, ncols=7)
    bars = f"bars: {look.level:.0%} t intervals over them."
    return figure, f"{describe_sample(table)}; {bars}"
