"""Figure tuning: loss of the pilot models against the learning rate, one curve per norm."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select, split
from normscope.studies.arms import arm_label, arm_look
from normscope.studies.rows import CELL, LOOKS

HEIGHT_MM = 120
PANELS = ("LayerNorm and RMSNorm", "other norms, and none", "other placements")


def panel_of(arm: str, placement: str) -> str:
    """The panel that shows a norm, so that no panel has more than six curves."""
    if placement not in ("pre", "none"):
        return PANELS[2]
    return PANELS[0] if arm.startswith(("layernorm", "rmsnorm")) else PANELS[1]


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Panels of norms; a filled marker is the rate that was chosen."""
    rates = tables["rates"].sort_values("learning_rate")
    cells = zip(rates["arm"], rates["placement"], strict=True)
    rates = rates.assign(panel=[panel_of(*cell) for cell in cells])
    shown = [(title, part) for title in PANELS if len(part := select(rates, panel=title))]
    figure, axes = style.canvas(look.width_mm, HEIGHT_MM, 1, max(len(shown), 1))
    if not shown:
        return figure, style.say(axes[0, 0], "no pilot model was trained")
    for axis, (title, part) in zip(axes[0], shown, strict=True):
        for cell, curve in split(part, ["protocol", *CELL]):
            draw_curve(axis, curve, cell["arm"], cell["placement"])
        style.log_x(axis, rates["learning_rate"])
        axis.set(title=title, xlabel="learning rate")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
    axes[0, 0].set_ylabel("validation loss (nats per character)")
    return figure, ""


def draw_curve(axis: Axes, curve: pd.DataFrame, arm: str, placement: str) -> None:
    """The losses of a norm by learning rate."""
    look: dict = arm_look(arm)
    if placement in ("post", "peri"):
        look |= {"linestyle": LOOKS[placement]["linestyle"], "linewidth": 1.0}
    axis.plot(
        curve["learning_rate"], curve["loss"], label=arm_label(arm, placement), mfc="none", **look
    )
    best = curve[curve["is_best"]]
    mark: dict = look | {"linestyle": ""}
    axis.plot(best["learning_rate"], best["loss"], **mark)
