"""Figure untrained_depth: sensitivity and gradient of untrained networks by depth."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from normscope.paper import style
from normscope.paper.drawing import Look
from normscope.statistics.summary import geometric_mean, split
from normscope.studies.literature.figures import DOTS, LOOKS, label

HEIGHT_MM = 75
MEASURES = {
    "output_change": "squared relative change of the output",
    "last_gradient": "gradient of the last matrix",
}


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One panel per measure."""
    networks = tables["networks"]
    n = style.sample_size(networks.groupby(["arm", "placement", "depth"])["seed"].nunique())
    figure, axes = style.canvas(look.width_mm, HEIGHT_MM, 1, len(MEASURES), shared=False)
    for axis, (measure, title) in zip(axes[0], MEASURES.items(), strict=True):
        for kind, rows in split(networks, ["arm", "placement"]):
            shown, name = LOOKS[kind["placement"]], label(kind["arm"], kind["placement"])
            means = rows.groupby("depth")[measure].agg(geometric_mean)
            axis.plot(means, **shown | {"marker": ""})
            style.points(axis, rows["depth"], rows[measure], name, **shown | DOTS)
            axis.plot([], [], label=name, mfc="none", **shown)
        style.log_x(axis, networks["depth"], base=2)
        style.log_y(axis)
        axis.set_xlabel("blocks")
        axis.set_title(f"{title}, {n}")
    style.legend_below(figure, style.labelled(figure.axes), ncols=4)
    return figure, f"{n} at each depth."
