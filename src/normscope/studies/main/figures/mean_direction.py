"""Figure mean_direction: how much of the residual stream lies along the mean, by norm."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.studies.rows import MM_PER_PANEL, MM_PER_ROW, by_unit, cells_of, draw_rows

PLACES = ("pre", "none")


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, protocols: Mapping[str, str]
) -> tuple[Figure, str]:
    """One panel per protocol, one row of markers per norm in pre-norm, and no norm."""
    models = tables["chosen"].dropna(subset="uniform_energy")
    models = models[models["placement"].isin(PLACES)]
    panels = {
        title: cells_of(by_unit(of, "uniform_energy"))
        for key, title in protocols.items()
        if len(of := models[models["protocol"] == key])
    }
    counts = [len(cells) for cells in panels.values()] or [1]
    figure, axes = style.panel_column(look.width_mm, MM_PER_ROW, MM_PER_PANEL, counts)
    if not panels:
        axes[0].set_title("share of the mean direction")
        return figure, style.say(axes[0], "no model was measured")
    for axis, (title, cells) in zip(axes, panels.items(), strict=True):
        draw_rows(axis, cells, "uniform_energy", look.level, is_placed=False, is_log=True)
        axis.set_title(title)
        axis.set_xscale("log")
        style.baseline(axis, 1, vertical=True)
    axes[-1].set_xlabel("energy along the mean, relative to a random direction")
    return figure, f"Bars: {look.level:.0%} t intervals over models."
