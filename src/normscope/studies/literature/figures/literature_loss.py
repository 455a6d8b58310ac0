"""Figure literature_loss: loss by norm and placement, every seed a point."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select, split
from normscope.studies.arms import arm_look
from normscope.studies.literature.figures import DOTS, label
from normscope.studies.literature.tables import TABLES

MM_PER_ROW, MM_PER_PANEL, MM_BELOW = 4.2, 10.5, 6
SINGLE = "protocols with one norm"  # the title of their panel
Cell = dict[str, Any]


def in_panels(cells: pd.DataFrame) -> dict[str, list[Cell]]:
    """The cells of every panel by its title: of a protocol, or of those with one norm."""
    panels: dict[str, list[Cell]] = {}
    single: list[Cell] = []
    for of_protocol, rows in split(cells, ["protocol"]):
        protocol, alone = of_protocol["protocol"], len(rows) == 1
        for row in rows.to_dict("records"):
            name = label(row["arm"], row["placement"])
            cell: dict = {**row, "name": f"{protocol}: {name}" if alone else name}
            (single if alone else panels.setdefault(protocol, [])).append(cell)
    return panels | ({SINGLE: single} if single else {})


def draw_panel(axis: Axes, cells: list[Cell], chosen: pd.DataFrame) -> None:
    """One row of markers per cell, with the mean and its interval."""
    keys, notes = TABLES["cells"].keys, []
    for y, cell in enumerate(cells):
        look: dict = arm_look(cell["arm"]) | DOTS
        models = select(chosen, **{key: cell[key] for key in keys})
        for failed, mark in ((0, look["marker"]), (1, "x")):
            losses = models.loc[models["failed"] == failed, "capped_loss"]
            marks: dict = look | {"marker": mark}
            axis.plot(losses, np.full(len(losses), y), **marks)
        style.dash(axis, cell["mean"], y, (cell["low"], cell["high"]), color=look["color"])
        edge = " edge" if cell["at_edge"] else ""
        notes.append(f"{style.sample_size([cell['n']])} at {cell['rate']:g}{edge}")
    style.name_rows(axis, [cell["name"] for cell in cells])
    style.annotate_rows(axis, notes)


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One panel per protocol, and one of the protocols with one norm."""
    panels = in_panels(tables["cells"])
    counts = [len(cells) for cells in panels.values()]
    figure, axes = style.canvas(
        look.width_mm,
        MM_PER_ROW * sum(counts) + MM_PER_PANEL * len(counts) + MM_BELOW,
        len(counts),
        1,
        shared=False,
        height_ratios=[n + 1 for n in counts],
    )
    for axis, (title, cells) in zip(axes[:, 0], panels.items(), strict=True):
        draw_panel(axis, cells, tables["chosen"])
        axis.set_title(title)
    axes[-1, 0].set_xlabel("validation loss (nats per character)")
    return figure, f"Bars: means and {look.level:.0%} t intervals over models."
