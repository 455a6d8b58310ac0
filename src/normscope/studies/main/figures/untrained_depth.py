"""Figure untrained_depth: untrained networks by depth, and towers of attention alone."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import geometric_mean, split
from normscope.studies.arms import arm_look
from normscope.studies.main.figures import DOTS, LOOKS, label

HEIGHT_MM = 75
MEASURES = {
    "output_change": "relative change of the\noutput, squared",
    "last_gradient": "gradient of the\nlast matrix",
}


def draw_depths(axis: Axes, networks: pd.DataFrame, measure: str) -> None:
    """One series per norm and placement: every network, and geometric means."""
    for kind, rows in split(networks, ["arm", "placement"]):
        shown = LOOKS[kind["placement"]]
        means = rows.groupby("depth")[measure].agg(geometric_mean)
        line: dict = shown | {"marker": ""}
        axis.plot(means, **line)
        axis.plot(rows["depth"], rows[measure], **shown | DOTS)
        axis.plot([], [], label=label(kind["arm"], kind["placement"]), mfc="none", **shown)
    style.log_x(axis, networks["depth"], base=2)
    style.log_y(axis)
    axis.set_xlabel("blocks")


def draw_towers(axis: Axes, towers: pd.DataFrame) -> None:
    """One row of markers per norm and mask, with their mean."""
    names = []
    for y, (kind, rows) in enumerate(split(towers, ["arm", "causal"])):
        look, rates = arm_look(kind["arm"]), rows["collapse_rate"]
        axis.plot(rates, np.full(len(rates), y), **look | DOTS)
        axis.plot([rates.mean()], [y], color=look["color"], **style.DASH)
        mask = "causal" if kind["causal"] else "no mask"
        names.append(f"{ARMS[kind['arm']].label},\n{mask}")
    style.name_rows(axis, names)
    style.few_ticks(axis, is_log=False)
    axis.set_xlabel("log of the factor per layer")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One panel per measure of networks, and one of the towers."""
    networks, towers = tables["networks"], tables["towers"]
    n = style.sample_size(networks.groupby(["arm", "placement", "depth"])["seed"].nunique())
    of_towers = style.sample_size(towers.groupby(["arm", "causal"])["seed"].nunique())
    figure, axes = style.canvas(look.width_mm, HEIGHT_MM, 1, len(MEASURES) + 1, shared=False)
    *by_depth, last = axes[0]
    for axis, (measure, title) in zip(by_depth, MEASURES.items(), strict=True):
        draw_depths(axis, networks, measure)
        axis.set_title(f"{title}, {n}")
    draw_towers(last, towers)
    last.set_title(f"collapse of towers,\n{of_towers}")
    style.legend_below(figure, style.labelled(figure.axes), ncols=4)
    return figure, f"{n} at each depth, and {of_towers} towers in a row."
