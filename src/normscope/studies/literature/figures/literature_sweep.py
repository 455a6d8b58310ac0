"""Figure literature_sweep: what the learning rate does with and without norms of Q and K."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import split
from normscope.studies.literature.figures import DOTS, label
from normscope.studies.literature.tables import TABLES
from normscope.studies.study import FEWEST_RATES

HEIGHT_MM = 75
SHIFT = 0.3  # octaves over which the series are dodged
AT_TOP = 0.97  # where models are drawn that failed, as a share of the axis


def draw_series(axis: Axes, models: pd.DataFrame, i: int, n: int, name: str) -> None:
    """The i-th of n series: every model, and medians over seeds."""
    look: dict = {"color": style.COLORS[i % len(style.COLORS)]}
    look |= {"marker": style.MARKERS[i % len(style.MARKERS)]}
    line: dict = look | {"marker": ""}
    x = models["learning_rate"] * style.dodge_log(i, n, SHIFT)
    axis.plot(models["capped_loss"].groupby(x).median(), **line)
    learned, failed = (models["failed"] == value for value in (0, 1))
    axis.plot(x[learned], models.loc[learned, "capped_loss"], **look | DOTS)
    at_top: dict = {"transform": axis.get_xaxis_transform(), "marker": "x"}
    axis.plot(x[failed], np.full(sum(failed), AT_TOP), **look | DOTS | at_top)
    axis.plot([], [], label=name, mfc="none", **look)


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One series per cell that was trained at several rates."""
    runs, keys = tables["runs"], TABLES["sweeps"].keys[:-1]
    tried = runs.groupby(keys)["learning_rate"].transform("nunique")
    runs = runs[tried >= FEWEST_RATES]
    figure, axes = style.canvas(look.width_mm, HEIGHT_MM, 1, 1)
    axis = axes[0, 0]
    cells = list(split(runs, keys))
    protocols = [cell["protocol"] for cell, _ in cells]
    for i, (cell, models) in enumerate(cells):
        protocol = cell["protocol"]
        is_alone = protocols.count(protocol) == 1
        name = protocol if is_alone else f"{protocol}: {label(cell['arm'], cell['placement'])}"
        draw_series(axis, models, i, len(cells), name)
    style.log_x(axis, runs["learning_rate"])
    axis.set_xlabel("learning rate")
    axis.set_ylabel("validation loss (nats per character)")
    n = style.sample_size(runs.groupby([*keys, "learning_rate"])["seed"].nunique())
    axis.set_title(f"{n} at each setting")
    style.legend_below(figure, style.labelled(figure.axes), ncols=3)
    return figure, f"{n} at each setting."
