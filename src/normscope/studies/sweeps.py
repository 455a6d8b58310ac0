"""A panel of losses by learning rate, in the figures of several studies."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from normscope.pages import style
from normscope.studies.arms import add_sample, draw_models, in_order, line_look

SHIFT = 0.13  # octaves per arm, by which arms are dodged


def draw_panel(axis: Axes, runs: pd.DataFrame) -> None:
    """Every model an open marker, a cross at the top where it failed; medians over seeds joined."""
    arms = in_order(list(runs["arm"]))
    for i, arm in enumerate(arms):
        shift = style.dodge_log(i, len(arms), SHIFT * len(arms))
        models = runs[runs["arm"] == arm]
        models = models.assign(x=models["learning_rate"] * shift)
        axis.plot(models.groupby("x")["capped_loss"].median(), **line_look(arm))
        learned, failed = models[models["failed"] == 0], models[models["failed"] == 1]
        draw_models(axis, arm, learned["x"], learned["capped_loss"], markersize=3)
        at_top: dict = {"transform": axis.get_xaxis_transform(), "marker": "x", "mfc": None}
        draw_models(axis, arm, failed["x"], np.full(len(failed), 0.97), markersize=3, **at_top)
        add_sample(axis, arm)
    style.log_x(axis, runs["learning_rate"])
    axis.set_xlabel("learning rate")
