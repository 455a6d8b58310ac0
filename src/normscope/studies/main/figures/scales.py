"""Figure scales: sigma, the gain of the last block and the size of logits during training."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import split
from normscope.studies.arms import arm_look
from normscope.studies.main.figures import label
from normscope.studies.main.tables import TABLES

HEIGHT_MM, LEGEND_MM = 58, 4.2  # of the panels, and of a line of the legend
COLUMNS = 2  # of the legend
SCALES = {
    "sigma": "sigma before the final norm",
    "last_gain": "residual gain of the last block",
    "logit_sd": "standard deviation of logits",
}
CELL = TABLES["arms"].keys
THIN: dict = {"linewidth": 0.4, "alpha": 0.4}  # one model among those of a cell


def draw_panel(axis: Axes, cells: Mapping[str, pd.DataFrame], scale: str) -> None:
    """One line per cell, the median over models, and a thin one per model.

    The color tells the arm, and the dashes tell cells of one arm apart.
    """
    drawn: list[str] = []
    for name, steps in cells.items():
        arm = steps["arm"].iloc[0]
        color, dashes = arm_look(arm)["color"], style.LINES[drawn.count(arm) % len(style.LINES)]
        drawn.append(arm)
        for _, model in split(steps, ["seed"]):
            axis.plot(model["step"], model[scale], color=color, linestyle=dashes, **THIN)
        median = steps.groupby("step")[scale].median()
        axis.plot(median, color=color, linestyle=dashes, label=name)
    axis.set_xscale("log")
    style.log_y(axis)
    axis.set_xlabel("step")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One panel per scale."""
    cells = {}
    for cell, steps in split(tables["scales"], CELL):
        n = style.sample_size([steps["seed"].nunique()])
        cells[f"{cell['protocol']}: {label(cell['arm'], cell['placement'])}, {n}"] = steps
    height = HEIGHT_MM + LEGEND_MM * -(-len(cells) // COLUMNS)
    figure, axes = style.canvas(look.width_mm, height, 1, len(SCALES), shared=False)
    for axis, (scale, title) in zip(axes[0], SCALES.items(), strict=True):
        axis.set_title(title)
        if cells:
            draw_panel(axis, cells, scale)
    if not cells:
        return figure, style.say(axes[0, 1], "no training recorded its scales")
    style.baseline(axes[0, 1], 1)
    style.legend_below(figure, style.labelled(figure.axes), ncols=COLUMNS)
    return figure, f"{style.sample_size(steps['seed'].nunique() for steps in cells.values())}."
