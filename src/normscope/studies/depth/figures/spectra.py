"""Figure spectra: singular values of the blocks' Jacobians, and angles, block by block."""

from collections.abc import Mapping

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
from normscope.studies.depth.measures import ANGLES, SINGULAR

STATES = {"start": "at the start", "trained": "trained"}
ENDS: dict[str, dict] = {
    "largest": {"marker": "^", "linestyle": ""},
    "smallest": {"marker": "v", "linestyle": "", "mfc": "white"},
}
LINES = dict(zip(ANGLES, style.LINES, strict=False))
WIDTH = 0.5  # blocks over which placements are dodged
ZERO = 3e-3  # the floor, where what is below is drawn


def kinds_of(table: pd.DataFrame) -> list[tuple[str, bool, int]]:
    """State, residual and depth of the deepest models of each kind."""
    deepest = table.groupby(["state", "residual"])["depth"].max().to_dict()
    kinds = [(state, residual) for residual in RESIDUAL for state in STATES]
    return [(*kind, deepest[kind]) for kind in kinds if kind in deepest]


def draw_spectra(axis: Axes, panel: pd.DataFrame) -> None:
    """Largest and smallest singular value of each block, side by side; the floor is marked."""
    axis.axhline(1, color="0.6", linewidth=0.6)
    axis.axhline(ZERO, color="0.6", linewidth=0.6, linestyle=":")
    blocks = sorted(set(panel["block"]))
    shown = [name for name in PLACEMENTS if (panel["placement"] == name).any()]
    for (placement, end), line in panel.groupby(["placement", "measure"], sort=False):
        color = COLORS[str(placement)]
        shift = style.dodge(shown.index(str(placement)), len(shown), WIDTH)
        x = line["block"].map(blocks.index) + shift
        low, high = (line[k].clip(lower=ZERO) for k in ("low", "high"))
        axis.vlines(x, low, high, color=color, linewidth=0.8)
        for is_shown in (line["mean"] < ZERO, line["mean"] >= ZERO):
            mean = line["mean"][is_shown].clip(lower=ZERO)
            axis.plot(x[is_shown], mean, color=color, **ENDS[str(end)])
    axis.set_xticks(range(len(blocks)), [str(block) for block in blocks])
    axis.set_xlabel("block")
    axis.set_xlim(-0.5, max(1, len(blocks)) - 0.5)


def draw_angles(axis: Axes, panel: pd.DataFrame) -> None:
    """A line per placement and branch; 90 degrees is at a right angle."""
    for placement in PLACEMENTS:
        for angle in ANGLES:
            line = summary.select(panel, placement=placement, measure=angle)
            if len(line):
                draw_band(axis, line, placement, linestyle=LINES[angle])
    axis.axhline(90, color="0.6", linewidth=0.6)
    axis.set_ylim(0, 180)
    axis.set_yticks([0, 45, 90, 135, 180])


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """The extreme singular values, and the angles of networks with residual connections."""
    table = select(tables["by_block"])
    kinds = kinds_of(table)
    figure, (tops, bottoms) = style.parts(look.width_mm, (60, 60))
    upper = tops.subplots(1, max(1, len(kinds)), sharey=True, squeeze=False)[0]
    with_stream = [kind for kind in kinds if kind[1]]
    lower = bottoms.subplots(1, max(1, len(with_stream)), sharey=True, squeeze=False)[0]
    upper[0].set_ylabel("singular values\nof a block")
    lower[0].set_ylabel("angle to the stream\n(degrees)")
    shown = []
    for (state, residual, depth), axis in zip(kinds, upper, strict=False):
        models = summary.select(table, state=state, residual=residual, depth=depth)
        shown.append(models)
        draw_spectra(axis, models[models["measure"].isin(SINGULAR)])
        n = style.sample_size(models.loc[models["measure"].isin(SINGULAR), "n"])
        axis.set_title(f"{depth} blocks, {STATES[state]},\n{RESIDUAL[residual]}, {n}")
    if kinds:
        upper[0].set_yscale("log")
        upper[0].set_ylim(bottom=ZERO / 1.6)
    for (state, residual, depth), axis in zip(with_stream, lower, strict=False):
        models = summary.select(table, state=state, residual=residual, depth=depth)
        draw_angles(axis, models)
        n = style.sample_size(models.loc[models["measure"].isin(ANGLES), "n"])
        axis.set_title(f"{depth} blocks, {STATES[state]}, {n}")
        number_blocks(axis)
    looks = ENDS | {
        "attention": {"linestyle": LINES["angle_attention"]},
        "MLP": {"linestyle": LINES["angle_mlp"]},
        "floor: that or less": {"linestyle": ":"},
    }
    legend_below(figure, table["placement"], looks, ncols=5)
    n = describe_sample(pd.concat(shown) if shown else table)
    return figure, f"{n}; bars and bands: {look.level:.0%} t intervals over them."
