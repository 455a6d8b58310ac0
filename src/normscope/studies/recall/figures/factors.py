"""Figure factors: loss and accuracy of the norms that statements about the recall test compare."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import describe, select
from normscope.statistics.tuning import choose
from normscope.studies.arms import arm_look, in_order
from normscope.studies.recall.figures import describe_sample

COLUMNS = {"loss": "loss (nats)", "accuracy": "accuracy"}
GEOMETRIC = ("loss",)
MM_PER_ROW, REST_MM = 7, 20


def draw_row(axis: Axes, y: int, models: pd.DataFrame, column: str, level: float) -> None:
    """Every model a point, the mean a dash; what diverged is a cross at the right."""
    look = arm_look(models["arm"].iloc[0]) | {"mfc": "none", "linestyle": "", "markersize": 3}
    axis.plot(models[column], np.full(len(models), y), **look)
    bounds = describe(models[column], level, geometric=column in GEOMETRIC)
    if bounds["n"]:
        style.dash(axis, bounds["mean"], y, (bounds["low"], bounds["high"]), color=look["color"])
    lost = int(models["diverged_at"].notna().sum())
    cross: dict = {"marker": "x", "color": look["color"], "linestyle": ""}
    axis.plot([0.97] * lost, [y] * lost, transform=axis.get_yaxis_transform(), **cross)


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, task: str, norms: Sequence[str]
) -> tuple[Figure, str]:
    """One row per norm, of one task's runs at the rates chosen for each."""
    runs = select(tables["runs"], task=task)
    models = choose(runs[runs["arm"].isin(norms)], ["arm"], by="loss")
    arms = in_order(list(models["arm"]))
    height = MM_PER_ROW * len(arms) + REST_MM
    figure, axes = style.canvas(look.width_mm, height, 1, len(COLUMNS))
    for axis, (column, title) in zip(axes[0], COLUMNS.items(), strict=True):
        for y, arm in enumerate(arms):
            draw_row(axis, y, select(models, arm=arm), column, look.level)
        axis.set_title(title)
        axis.set_xscale("log" if column in GEOMETRIC else "linear")
    style.name_rows(axes[0, 0], [ARMS[arm].label for arm in arms])
    counts = [models.loc[models["arm"] == arm, "seed"].nunique() for arm in arms]
    style.annotate_rows(axes[0, -1], [style.sample_size([n]) for n in counts])
    return figure, f"{describe_sample(models)} Bars: {look.level:.0%} t intervals over models."
