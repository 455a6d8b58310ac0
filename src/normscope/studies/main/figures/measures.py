"""Figure measures: what statements test in the trained models, every model a point."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import arm_look
from normscope.studies.main.figures import DOTS, label
from normscope.studies.main.tables import TABLES

MM_PER_ROW, MM_PER_PART = 3.6, 14
SMALL: dict = {"markersize": 2.5, "markeredgewidth": 0.7}
MEDIAN: dict = style.DASH | {"markersize": 7, "markeredgewidth": 1}
DEEP = 3  # blocks from which differences between blocks are shown
KEYS = TABLES["arms"].keys
BY_BLOCK = [
    *("stream_growth", "growth_imbalance"),
    *("gradient_spread", "parameter_gradient_spread", "free_blocks"),
]
Cells = tuple[tuple[str, ...], ...]


class Shown(NamedTuple):
    """How a measure is shown: the title of its panel, and whether its axis is logarithmic."""

    title: str
    is_log: bool = False


MEASURES = {
    "stream_growth": Shown("stream\ngrowth", is_log=True),
    "growth_imbalance": Shown("imbalance\nof growth"),
    "gradient_spread": Shown("gradients\nat inputs"),
    "parameter_gradient_spread": Shown("gradients by\nparameters"),
    "free_blocks": Shown("free\nblocks"),
    "uniform_energy": Shown("uniform energy", is_log=True),
    "unselectable_keys": Shown("unselectable keys"),
    "unselectable": Shown("unselectable inputs"),
    "frozen_loss": Shown("frozen norms\n(nats)"),
    "refined_loss": Shown("after further\nsteps (nats)"),
    "one_frozen_loss": Shown("one frozen\nnorm (nats)"),
    "one_refined_loss": Shown("after further\nsteps (nats)"),
}


def without_shallow(chosen: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    """The models, without what tells blocks apart where they have hardly any."""
    depth = blocks.groupby(KEYS)["block"].max()
    is_deep = pd.MultiIndex.from_frame(chosen[KEYS]).isin(depth.index[depth >= DEEP])
    shown = chosen.copy()
    shown.loc[~is_deep, BY_BLOCK] = np.nan
    return shown


def in_parts(chosen: pd.DataFrame) -> dict[Cells, list[str]]:
    """The measures by the cells in which they are known, which are their rows."""
    known = chosen.groupby(KEYS, sort=False)[list(MEASURES)].count() > 0
    parts: dict[Cells, list[str]] = {}
    for measure in MEASURES:
        cells = tuple(known.index[known[measure]])
        if cells:
            parts.setdefault(cells, []).append(measure)
    return parts


def draw_panel(axis: Axes, chosen: pd.DataFrame, cells: Cells, measure: str) -> None:
    """One row of markers per cell, with their median."""
    for y, cell in enumerate(cells):
        at = dict(zip(KEYS, cell, strict=True))
        values = select(chosen, **at)[measure].dropna()
        look = arm_look(at["arm"])
        axis.plot(values, np.full(len(values), y), **look | DOTS | SMALL)
        axis.plot([values.median()], [y], color=look["color"], **MEDIAN)
    axis.set_title(MEASURES[measure].title)
    style.few_ticks(axis, is_log=MEASURES[measure].is_log)
    axis.tick_params(labelsize="small")


def separate(axis: Axes, protocols: Sequence[str]) -> None:
    """A thin line between the rows of two protocols."""
    for y, (above, below) in enumerate(pairwise(protocols)):
        if above != below:
            style.baseline(axis, y + 0.5)


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One line of panels per set of cells that have measures in common."""
    chosen = without_shallow(tables["chosen"], tables["blocks"])
    parts = in_parts(chosen)
    if not parts:
        figure, axes = style.canvas(look.width_mm, MM_PER_PART, 1, 1)
        return figure, style.say(axes[0, 0], "no model was measured")
    heights = [MM_PER_ROW * len(cells) + MM_PER_PART for cells in parts]
    figure, lines = style.parts(look.width_mm, heights)
    for line, (cells, measures) in zip(lines, parts.items(), strict=True):
        axes = line.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for axis, measure in zip(axes, measures, strict=True):
            draw_panel(axis, chosen, cells, measure)
            separate(axis, [protocol for protocol, *_ in cells])
        names = [f"{protocol}: {label(arm, placement)}" for protocol, arm, placement in cells]
        style.name_rows(axes[0], names)
        known = chosen.dropna(subset=measures, how="all").groupby(KEYS)["seed"].nunique()
        style.annotate_rows(axes[-1], [style.sample_size([known[cell]]) for cell in cells])
    return figure, "n: models in which a measure of the line of panels is known."
