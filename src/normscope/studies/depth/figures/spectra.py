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
    draw_lines,
    legend_below,
    select,
)
from normscope.studies.depth.tables import ANGLES, STATES

ENDS: dict[str, dict] = {
    "largest": {"marker": "^", "linestyle": ""},
    "smallest": {"marker": "v", "linestyle": "", "mfc": "white"},
}
LINES = dict(zip(ANGLES, style.LINES, strict=False))
WIDTH = 0.5  # blocks over which placements are dodged
ZERO = 3e-3  # the floor, where what is below is drawn


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
        mean, low, high = (line[k].clip(lower=ZERO) for k in ("mean", "low", "high"))
        axis.vlines(x, low, high, color=color, linewidth=0.8)
        axis.plot(x, mean, color=color, **ENDS[str(end)])
    axis.set_xticks(range(len(blocks)), [str(block) for block in blocks])
    axis.set_xlabel("block")
    axis.set_xlim(-0.5, max(1, len(blocks)) - 0.5)
    axis.set_yscale("log")
    axis.set_ylim(bottom=ZERO / 1.6)


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """The extreme singular values, and the angles of networks with residual connections."""
    table = select(tables["by_block"], "gpt2")
    deepest = table.groupby(["state", "residual"])["depth"].max().to_dict()
    kinds = [kind for r in RESIDUAL for s in STATES if (kind := (s, r)) in deepest]
    figure, axes = style.canvas(look.width_mm, 120, 2, max(1, len(kinds)), shared=False)
    for row in axes:
        style.share_y(row)
    axes[0, 0].set_ylabel("singular values\nof a block")
    axes[1, 0].set_ylabel("angle to the stream\n(degrees)")
    parts = [table.head(0)]
    for (state, residual), (top, bottom) in zip(kinds, axes.T, strict=False):
        depth = deepest[state, residual]
        models = summary.select(table, state=state, residual=residual, depth=depth)
        spectra = models[models["measure"].isin(list(ENDS))]
        draw_spectra(top, spectra)
        when = f"{depth} blocks, {'trained' if state == 'trained' else 'at the start'}"
        top.set_title(f"{when},\n{RESIDUAL[residual]}, {style.sample_size(spectra['n'])}")
        parts.append(models)
        if not residual:
            bottom.remove()
            continue
        angles = models[models["measure"].isin(list(ANGLES))]
        bottom.axhline(90, color="0.6", linewidth=0.6)
        draw_lines(bottom, angles, "measure", LINES)
        bottom.set_title(f"{when},\n{style.sample_size(angles['n'])}")
        bottom.set_ylim(0, 180)
        bottom.set_yticks([0, 45, 90, 135, 180])
    looks = ENDS | {
        "attention": {"linestyle": LINES["angle_attention"]},
        "MLP": {"linestyle": LINES["angle_mlp"]},
        "floor: that or less": {"linestyle": ":"},
    }
    legend_below(figure, table["placement"], looks, ncols=5)
    n = describe_sample(pd.concat(parts))
    return figure, f"{n}; bars and bands: {look.level:.0%} t intervals over them."
