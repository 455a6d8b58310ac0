"""Losses of trained models by protocol, arm and placement: every model a marker."""

from collections.abc import Mapping, Sequence
from typing import get_args

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.recipe import Placement
from normscope.pages import style
from normscope.statistics.summary import select
from normscope.studies.arms import arm_label, arm_look, describe_rate, in_order

MM_PER_ROW, MM_PER_PANEL = 5, 14


def in_rows(models: pd.DataFrame) -> list[tuple[str, str]]:
    """Arm and placement of every row of a panel."""
    cells = set(zip(models["arm"], models["placement"], strict=True))
    grid = [(a, p) for a in in_order(list(models["arm"])) for p in get_args(Placement)]
    return [cell for cell in grid if cell in cells]


def draw_rows(axis: Axes, models: pd.DataFrame, cells: pd.DataFrame, bounds: Sequence[str]) -> None:
    """One row of markers per arm and placement, a cross for a model that failed, and the mean."""
    rows = in_rows(models)
    by_row = cells.set_index(["arm", "placement"]).to_dict("index")
    for y, (arm, placement) in enumerate(rows):
        look: dict = arm_look(arm) | {"linestyle": "", "mfc": "none"}
        known = select(models, arm=arm, placement=placement).dropna(subset="shown")
        for failed, mark in ((0, look["marker"]), (1, "x")):
            shown = known.loc[known["failed"] == failed, "shown"]
            marks: dict = look | {"marker": mark}
            if len(shown):
                axis.plot(shown, np.full(len(shown), y), **marks)
        mean, low, high = (by_row[arm, placement][name] for name in bounds)
        style.dash(axis, mean, y, (low, high), color=look["color"])
    style.name_rows(axis, [arm_label(*row) for row in rows])
    style.annotate_rows(axis, [describe_cell(by_row[row]) for row in rows])


def describe_cell(cell: Mapping) -> str:
    """Sample size and learning rate of a row."""
    rate = describe_rate(cell["rate"], cell.get("rates", 0), at_edge=cell["at_edge"])
    return f"{style.sample_size([cell['n']])} at {rate}"


def draw_losses(
    models: pd.DataFrame, cells: pd.DataFrame, width_mm: float, bounds: Sequence[str]
) -> tuple[Figure, np.ndarray]:
    """One panel per protocol.

    Args:
        models: one row per model, with protocol, arm, placement, failed, and what is shown of it.
        cells: one row per protocol, arm and placement, with n, the rate and the bounds.
        width_mm: width of the figure.
        bounds: columns of the mean and of the ends of its interval.
    """
    panels = dict(list(models.groupby("protocol", sort=False)))
    counts = [len(in_rows(panel)) for panel in panels.values()]
    figure, axes = style.stacked(width_mm, MM_PER_ROW, MM_PER_PANEL, counts)
    for axis, (protocol, panel) in zip(axes, panels.items(), strict=True):
        draw_rows(axis, panel, select(cells, protocol=protocol), bounds)
        axis.set_title(protocol)
    return figure, axes
