"""How figures show models in rows, one per norm and placement, and the looks of placements."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.levels import FEWEST
from normscope.statistics.summary import describe
from normscope.studies.arms import AS_CHANCE, arm_look, divergences, in_order

_ORDER = ("none", *(placement for placement in PLACEMENTS if placement != "none"))
LOOKS: dict[str, dict] = {
    placement: {
        "color": style.COLORS[i % len(style.COLORS)],
        "marker": style.MARKERS[i % len(style.MARKERS)],
        "linestyle": style.LINES[i % len(style.LINES)],
    }
    for i, placement in enumerate(_ORDER)
}
DOTS: dict = {"linestyle": "", "mfc": "none", "markersize": 3}  # single models
MM_PER_ROW, MM_PER_PANEL = 5, 14
LINEAR = 0.1  # nats up to which an axis is linear: seeds differ by hundredths, norms by up to 1
SAME = 0.01  # nats; smaller differences decide nothing
LEAST = (-0.05, 0.05)  # what is shown in any case
ROOM = 1.3  # around all that is shown
CELL = ["arm", "placement"]
Cells = Mapping[tuple[str, str], pd.DataFrame]


def by_unit(models: pd.DataFrame, column: str) -> pd.DataFrame:
    """The models of a protocol; means over those of each text, if it has several texts."""
    if models["text"].nunique() < 2:
        return models
    how = {column: "mean", "failed": "max", "diverged_at": "min", "seed": "first"}
    return models.groupby(["protocol", *CELL, "text"], sort=False, as_index=False).agg(how)


def cells_of(models: pd.DataFrame) -> Cells:
    """The models by norm and placement, without cells of fewer seeds than a comparison needs.

    If no cell has enough seeds, as in a demonstration, all are shown.
    """
    sizes = models.groupby(CELL)["seed"].transform("size")
    if (sizes >= FEWEST).any():
        models = models[sizes >= FEWEST]
    cells = dict(list(models.groupby(CELL, sort=False)))
    return {
        (a, p): cells[a, p]
        for a in in_order(list(models["arm"]))
        for p in _ORDER
        if (a, p) in cells
    }


def label(arm: str, placement: str, *, is_placed: bool = True) -> str:
    """An arm, with the name of its placement where rows differ in it: ``RMSNorm, pre-norm``."""
    is_placed &= placement != "none"
    return f"{ARMS[arm].label}, {PLACEMENTS[placement]}" if is_placed else ARMS[arm].label


def draw_rows(
    axis: Axes, cells: Cells, column: str, level: float, *, is_placed: bool, is_log: bool = False
) -> None:
    """A row per cell: every model a marker, a cross if it failed, and the mean with interval."""
    notes = []
    for y, ((arm, _), models) in enumerate(cells.items()):
        look: dict = arm_look(arm) | DOTS
        for failed, mark in ((0, look["marker"]), (1, "x")):
            shown = models.loc[models["failed"] == failed, column]
            marks: dict = look | {"marker": mark}
            axis.plot(shown, np.full(len(shown), y), **marks)
        bounds = describe(models[column], level, geometric=is_log)
        style.dash(axis, bounds["mean"], y, (bounds["low"], bounds["high"]), color=look["color"])
        notes.append(style.sample_size([bounds["n"]]))
    style.name_rows(axis, [label(*cell, is_placed=is_placed) for cell in cells])
    style.annotate_rows(axis, notes)


def draw_differences(
    panels: Mapping[str, pd.DataFrame], look: Look, column: str, reference: str
) -> tuple[Figure, str]:
    """One panel per title, of the models' differences to a reference, in nats, on one axis."""
    rows = {
        title: cells_of(by_unit(of.assign(protocol=title), column))
        for title, of in panels.items()
        if len(of)
    }
    if not rows:
        figure, axes = style.canvas(look.width_mm, MM_PER_PANEL, 1, 1)
        return figure, style.say(axes[0, 0], "no such model was trained")
    counts = [len(cells) for cells in rows.values()]
    figure, axes = style.panel_column(look.width_mm, MM_PER_ROW, MM_PER_PANEL, counts)
    placements = {placement for cells in rows.values() for _, placement in cells} - {"none"}
    for axis, (title, cells) in zip(axes, rows.items(), strict=True):
        draw_rows(axis, cells, column, look.level, is_placed=len(placements) > 1)
        axis.set_title(title)
    shown = pd.concat([models for cells in rows.values() for models in cells.values()])
    ends = [*LEAST, *shown[column].dropna()]
    for axis in axes:
        axis.set_xlim(ROOM * min(ends), ROOM * max(ends))  # intervals of a few seeds end beyond
        style.symlog(axis, LINEAR)
        style.baseline(axis, 0, vertical=True)
        axis.axvspan(-SAME, SAME, color="0.85", linewidth=0, zorder=-1)
    axes[-1].set_xlabel(f"validation loss above {reference} (nats per character)")
    lost = divergences(shown, ("protocol", *CELL), AS_CHANCE)
    return figure, f"Bars: {look.level:.0%} t intervals. {lost}"
