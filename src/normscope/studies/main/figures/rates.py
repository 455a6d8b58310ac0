"""Figure rates: what the learning rate does to each arm's validation loss."""

from collections.abc import Mapping
from typing import get_args

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.recipe import Placement
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import (
    AS_CHANCE,
    add_sample,
    count,
    divergences,
    draw_models,
    in_order,
    line_look,
    placement_title,
)
from normscope.studies.study import FEWEST_RATES

MM_PER_PANEL, LEGEND_MM = 62, 25
SHIFT = 0.13  # octaves per arm, by which arms are dodged
ROOM = 0.05  # nats around the losses of models that learned


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


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One panel per protocol and placement: loss against the learning rate."""
    runs = tables["runs"]
    tried = runs.groupby(["protocol", "arm", "placement"])["learning_rate"].transform("nunique")
    runs = runs[tried >= FEWEST_RATES]
    grid = [(protocol, p) for protocol in runs["protocol"].unique() for p in get_args(Placement)]
    cells = {c: models for c in grid if len(models := select(runs, protocol=c[0], placement=c[1]))}
    figure, axes = style.wrapped(look.width_mm, MM_PER_PANEL, LEGEND_MM, len(cells))
    first: dict[str, Axes] = {}
    for ((protocol, placement), models), axis in zip(cells.items(), axes[:, 0], strict=True):
        axis.sharey(first.setdefault(protocol, axis))
        draw_panel(axis, models)
        per_rate = models.groupby(["arm", "learning_rate"])["seed"].nunique()
        n = style.sample_size(per_rate)
        axis.set_title(f"{protocol}, {placement_title(placement)},\n{n} at each rate")
        if style.is_first(axis):
            axis.set_ylabel("validation loss (nats per character)")
    for protocol, axis in first.items():
        learned = select(runs, protocol=protocol, failed=0)["capped_loss"]
        if len(learned):
            axis.set_ylim(learned.min() - ROOM, learned.max() + ROOM)
    style.legend_below(figure, style.labelled(figure.axes), ncols=4)
    by = ("protocol", "arm", "placement", "learning_rate")
    lost = divergences(runs, by, AS_CHANCE)
    return figure, f"n: {count(runs, ('protocol', 'arm', 'placement'))} at each rate. {lost}"
