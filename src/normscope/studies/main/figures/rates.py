"""Figure rates: what the learning rate does to the validation loss."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import split
from normscope.studies.arms import AS_CHANCE, divergences
from normscope.studies.study import FEWEST_RATES

HEIGHT_MM = 85
ROOM = 0.05  # nats around the losses of models that learned
SHIFT = 0.2  # octaves per line
CELL = ["protocol", "arm", "placement"]
LABELS = {key: arm.label for key, arm in ARMS.items()}


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, titles: Mapping[str, str]
) -> tuple[Figure, str]:
    """One line per cell that was trained at three rates or more, named by what differs."""
    runs = tables["runs"]
    tried = runs.groupby(CELL)["learning_rate"].transform("nunique")
    runs = runs[tried >= FEWEST_RATES]
    runs = runs.replace({"protocol": titles, "arm": LABELS, "placement": PLACEMENTS})
    differing = [key for key in CELL if runs[key].nunique() > 1] or ["protocol"]
    figure, axes = style.canvas(look.width_mm, HEIGHT_MM, 1, 1)
    axis, cells = axes[0, 0], list(split(runs, CELL))
    for i, (cell, models) in enumerate(cells):
        look_of: dict = {"color": style.COLORS[i % len(style.COLORS)]}
        mark = {"marker": style.MARKERS[i % len(style.MARKERS)]}
        shift = style.dodge_log(i, len(cells), SHIFT * len(cells))
        shifted = models.assign(x=models["learning_rate"] * shift)
        axis.plot(shifted.groupby("x")["capped_loss"].median(), **look_of)
        learned, failed = (shifted[shifted["failed"] == k] for k in (0, 1))
        dots: dict = look_of | {"linestyle": "", "mfc": "none", "markersize": 3}
        axis.plot(learned["x"], learned["capped_loss"], **dots | mark)
        at_top: dict = {"transform": axis.get_xaxis_transform(), "marker": "x"}
        axis.plot(failed["x"], np.full(len(failed), 0.97), **dots | at_top)
        name = ", ".join(cell[key] for key in differing)
        axis.plot([], [], label=name, mfc="none", **look_of | mark)
    style.log_x(axis, runs["learning_rate"])
    axis.set(xlabel="learning rate", ylabel="validation loss (nats per character)")
    learned = runs.loc[runs["failed"] == 0, "capped_loss"]
    if len(learned):
        axis.set_ylim(learned.min() - ROOM, learned.max() + ROOM)
    n = style.sample_size(runs.groupby([*CELL, "learning_rate"]).size())
    axis.set_title(f"{n} at each rate")
    style.legend_below(figure, style.legend_handles([axis]), ncols=3)
    return (
        figure,
        f"{n} models at each rate. {divergences(runs, (*CELL, 'learning_rate'), AS_CHANCE)}",
    )
