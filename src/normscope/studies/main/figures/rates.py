"""Figure rates: what the learning rate does to each arm's validation loss."""

from collections.abc import Mapping
from typing import get_args

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.recipe import Placement
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import (
    AS_CHANCE,
    count,
    divergences,
    placement_title,
)
from normscope.studies.study import FEWEST_RATES
from normscope.studies.sweeps import draw_panel

MM_PER_PANEL, LEGEND_MM = 62, 25
ROOM = 0.05  # nats around the losses of models that learned


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
