"""Figures loss and losses: validation loss by arm and placement, every model a marker."""

from collections.abc import Mapping, Sequence
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
    arm_label,
    arm_look,
    count,
    describe_rate,
    divergences,
    in_order,
)
from normscope.studies.main.figures import above_baseline

MM_PER_ROW, MM_PER_PANEL = 5, 14
ROOM = 1.3
LINEAR = 0.1  # nats up to which the axis is linear: seeds differ by hundredths, arms by up to 1
LEAST = (-0.05, 0.05)  # what is shown in any case
MEAN = ("mean", "low", "high")
DIFFERENCE = ("difference", "difference_low", "difference_high")


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


def draw(
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    protocols: Sequence[str],
    baseline: Mapping[str, str] | None = None,
) -> tuple[Figure, str]:
    """One panel per protocol: losses, or those above the baseline's, at chosen rates."""
    chosen, arms = (t[t["protocol"].isin(protocols)] for t in (tables["chosen"], tables["arms"]))
    if chosen.empty:
        figure, axes = style.canvas(look.width_mm, MM_PER_PANEL, 1, 1)
        return figure, style.say(axes[0, 0], "no such model was trained")
    chosen = chosen.assign(shown=chosen["capped_loss"])
    if baseline:
        chosen = above_baseline(chosen, baseline, ["protocol", "seed"], ["shown"])
    panels = dict(list(chosen.groupby("protocol", sort=False)))
    counts = [len(in_rows(panel)) for panel in panels.values()]
    figure, axes = style.stacked(look.width_mm, MM_PER_ROW, MM_PER_PANEL, counts)
    for axis, (protocol, panel) in zip(axes, panels.items(), strict=True):
        bounds = DIFFERENCE if baseline else MEAN
        draw_rows(axis, panel, select(arms, protocol=protocol), bounds)
        axis.set_title(protocol)
    above = f" above {arm_label(**baseline)}" if baseline else ""
    axes[-1].set_xlabel(f"validation loss{above} (nats per character)")
    lost = divergences(chosen, ("protocol", "arm", "placement"), AS_CHANCE)
    if not baseline:
        return figure, f"Bars: means and {look.level:.0%} t intervals over models. {lost}"
    ends = [*LEAST, *chosen["shown"].dropna()]
    for axis in axes:
        style.baseline(axis, 0, vertical=True)
        axis.set_xlim(ROOM * min(ends), ROOM * max(ends))  # intervals of a few seeds end beyond
        style.symlog(axis, LINEAR)
    words = [f"{p}: {count(models)}." for p, models in panels.items()]
    bars = f"Bars: mean and {look.level:.0%} t intervals that hold together in a protocol."
    return figure, f"n: {' '.join(words)} {bars} {lost}"
