"""Figure logits: the size of the logits during training, with a final norm and without it."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select, split

HEIGHT_MM = 70
THIN: dict = {"linewidth": 0.4, "alpha": 0.4}  # one model


def draw(
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    titles: Mapping[str, str],
    baseline: Mapping[str, str],
) -> tuple[Figure, str]:
    """One line per protocol, the median over models, and a thin one per model."""
    steps = select(tables["scales"], **baseline)
    figure, axes = style.canvas(look.width_mm, HEIGHT_MM, 1, 1)
    axis, counts = axes[0, 0], steps.groupby("protocol")["seed"].nunique()
    axis.set_title(f"standard deviation of the logits, {style.sample_size(counts)}")
    for i, (key, models) in enumerate(split(steps, ["protocol"])):
        color = style.COLORS[i + 1]
        for _, model in split(models, ["seed"]):
            axis.plot(model["step"], model["logit_sd"], color=color, **THIN)
        median = models.groupby("step")["logit_sd"].median()
        axis.plot(median, color=color, label=titles[key["protocol"]])
    axis.set_xscale("log")
    style.log_y(axis)
    axis.set_xlabel("step")
    style.legend_below(figure, style.legend_handles([axis]), ncols=3)
    return figure, f"{style.sample_size(counts)} models of each."
