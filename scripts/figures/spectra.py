"""Figure spectra: singular values of the blocks' Jacobians, and angles, block by block."""

from collections.abc import Mapping

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
from normscope.studies.depth.measures import ANGLES, PLACEMENTS, SINGULAR

STATES = {"start": "at the start", "trained": "trained"}
ENDS: dict[str, dict] = {
    "largest": {"marker": "^", "linestyle": ""},
    "smallest": {"marker": "v", "linestyle": "", "mfc": "white"},
}
LINES = dict(zip(ANGLES, style.LINES, strict=False))
SHIFT = 0.03  # of a placement's markers, in units of the depth, so that they can be told apart
ZERO = 3e-3  # the foot of the panel, where what is below is drawn


def columns(table: pd.DataFrame) -> list[tuple[str, bool, int]]:
    """State, residual and depth of every column: the deepest models of each kind."""
    deepest = table.groupby(["state", "residual"])["depth"].max().to_dict()
    kinds = [(state, residual) for residual in RESIDUAL for state in STATES]
    return [(*kind, deepest[kind]) for kind in kinds if kind in deepest]


def draw_spectra(axis: Axes, panel: pd.DataFrame) -> None:
    """Largest and smallest singular value; what is below the panel is drawn at its foot."""
    axis.axhline(1, color="0.6", linewidth=0.6)
    for (placement, end), line in panel.groupby(["placement", "measure"], sort=False):
        color = COLORS[str(placement)]
        aside = SHIFT * panel["block"].max() * (list(PLACEMENTS).index(str(placement)) - 1.5)
        mean, low, high = (line[k].clip(lower=ZERO) for k in ("mean", "low", "high"))
        axis.plot(line["block"] + aside, mean, color=color, **ENDS[str(end)])
        axis.vlines(line["block"] + aside, low, high, color=color, linewidth=0.8)
    axis.set_yscale("log")
    axis.set_ylim(bottom=ZERO / 1.6)


def draw_angles(axis: Axes, panel: pd.DataFrame) -> None:
    """A line per placement and branch; 90 degrees is at a right angle."""
    for placement in PLACEMENTS:
        for angle in ANGLES:
            line = summary.select(panel, placement=placement, measure=angle)
            if len(line):
                draw_band(axis, line, color=COLORS[placement], linestyle=LINES[angle])
    axis.axhline(90, color="0.6", linewidth=0.6)
    axis.set_ylim(0, 180)
    axis.set_yticks([0, 45, 90, 135, 180])


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """The extreme singular values and the angles by block."""
    table = select(tables["by_block"])
    kinds = columns(table)
    figure, axes = style.canvas(look.width_mm, 120, 2, max(1, len(kinds)), shared=False)
    axes[0, 0].set_ylabel("singular values of a block")
    axes[1, 0].set_ylabel("angle to the stream, degrees")
    shown = []
    for (state, residual, depth), top, bottom in zip(kinds, *axes, strict=False):
        models = summary.select(table, state=state, residual=residual, depth=depth)
        shown.append(models)
        draw_spectra(top, models[models["measure"].isin(SINGULAR)])
        draw_angles(bottom, models)
        top.set_xlim(bottom.get_xlim())
        number_blocks(top)
        top.set_title(f"{depth} blocks,\n{RESIDUAL[residual]}, {STATES[state]}")
        number_blocks(bottom)
    looks = ENDS | {
        "attention": {"linestyle": LINES["angle_attention"]},
        "MLP": {"linestyle": LINES["angle_mlp"]},
    }
    legend_below(figure, table["placement"], looks, ncols=4)
    n = describe_sample(pd.concat(shown) if shown else table)
    return figure, f"{n}; bars and bands: {look.level:.0%} t intervals over them."


if __name__ == "__main__":
    run(draw)
