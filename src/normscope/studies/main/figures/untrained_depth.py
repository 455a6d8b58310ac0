"""Figure untrained_depth: the gradient of the last matrix, by the number of blocks."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import describe, geometric_mean, select, split
from normscope.studies.rows import DOTS, LOOKS

HEIGHT_MM = 75


def draw(tables: Mapping[str, pd.DataFrame], look: Look, arm: str) -> tuple[Figure, str]:
    """Every network of a norm, geometric means, and the slope over the depth."""
    networks, slopes = (select(tables[name], arm=arm) for name in ("networks", "slopes"))
    figure, axes = style.canvas(look.width_mm, HEIGHT_MM, 1, 1)
    axis = axes[0, 0]
    for kind, rows in split(networks, ["placement"]):
        shown = LOOKS[kind["placement"]]
        line: dict = shown | {"marker": ""}
        axis.plot(rows.groupby("depth")["last_gradient"].agg(geometric_mean), **line)
        axis.plot(rows["depth"], rows["last_gradient"], **shown | DOTS)
        slope = describe(select(slopes, **kind)["gradient_slope"], look.level)
        power = "{mean:.2f} [{low:.2f}, {high:.2f}]".format(**slope).replace("-", "−")
        name = f"{PLACEMENTS[kind['placement']]}: depth to the power of {power}"
        axis.plot([], [], label=name, mfc="none", **shown)
    style.log_x(axis, networks["depth"], base=2)
    style.log_y(axis)
    axis.set(xlabel="blocks", ylabel="norm of the gradient")
    n = style.sample_size(networks.groupby(["placement", "depth"])["seed"].nunique())
    axis.set_title(f"gradient by the last matrix, {n} at each depth")
    style.legend_below(figure, style.legend_handles([axis]), ncols=2)
    return figure, f"{n} at each depth; {look.level:.0%} t intervals."
