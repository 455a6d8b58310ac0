"""Figure sweep: what the learning rate does to each arm, and where each arm is best."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import geometric_mean, select
from normscope.studies.arms import add_sample, arm_legend, draw_models, in_order, line_look
from normscope.studies.recall.figures import PANELS, describe_sample, facet, mark_divergence
from normscope.studies.study import FEWEST_RATES

ROWS = {"loss": "loss (nats)", "accuracy": "accuracy"}
MM_PER_PANEL, LEGEND_MM = 38, 20
SHIFT = 0.13  # octaves per arm, by which arms are dodged

FULL = 1.02  # above all accuracies


def draw_panel(axis: Axes, panel: pd.DataFrame, column: str) -> None:
    """Every model an open marker, means joined (of losses geometric), the best rate filled."""
    arms = in_order(list(panel["arm"]))
    for i, arm in enumerate(arms):
        shift = style.dodge_log(i, len(arms), SHIFT * len(arms))
        runs = panel[panel["arm"] == arm]
        draw_models(axis, arm, runs["learning_rate"] * shift, runs[column], markersize=3)
        by_rate = runs.groupby("learning_rate")[column]
        means = by_rate.agg(geometric_mean) if column == "loss" else by_rate.mean()
        axis.plot(means.index * shift, means, **line_look(arm))
        losses = runs["loss"].fillna(np.inf).groupby(runs["learning_rate"]).mean()
        if np.isfinite(losses.min()):
            best = float(losses.index[int(losses.argmin())])
            filled: dict = {"markersize": 3, "mfc": None}
            draw_models(axis, arm, best * shift, means[best], **filled)
        add_sample(axis, arm)
    mark_divergence(axis, panel, "learning_rate")
    style.log_x(axis, panel["learning_rate"])


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Loss and accuracy against the learning rate, one cell per task and radius."""
    runs = tables["runs"]
    tried = runs.groupby(["task", "arm"])["learning_rate"].transform("nunique")
    runs = facet(runs[tried >= FEWEST_RATES])
    grid = [(task, panel) for task in dict.fromkeys(runs["task"]) for panel in PANELS]
    cells = {key: rows for key in grid if len(rows := select(runs, task=key[0], panel=key[1]))}
    figure, axes = style.wrapped(look.width_mm, MM_PER_PANEL, LEGEND_MM, len(cells), rows=len(ROWS))
    first: dict[tuple[str, str], Axes] = {}
    for ((task, panel), rows), cell in zip(cells.items(), axes, strict=True):
        for axis, (column, title) in zip(cell, ROWS.items(), strict=True):
            axis.sharey(first.setdefault((task, column), axis))
            draw_panel(axis, rows, column)
            n = style.sample_size(rows.groupby(["arm", "learning_rate"])["seed"].nunique())
            axis.set_title(f"{task}, {PANELS[panel]},\n{n}")
            if style.is_first(axis):
                axis.set_ylabel(title)
        cell[-1].set_xlabel("learning rate")
    for (_, column), axis in first.items():
        if column == "loss":
            style.log_y(axis)
        else:
            axis.set_ylim(top=FULL)
    arm_legend(figure)
    return figure, describe_sample(runs)
