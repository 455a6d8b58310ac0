"""Figure tuning: loss of the pilot models against the learning rate, one curve per norm."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select, split
from normscope.studies.arms import arm_label, arm_look
from normscope.studies.main.figures import CELL, LOOKS

HEIGHT_MM = 95


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, titles: Mapping[str, str]
) -> tuple[Figure, str]:
    """One panel per protocol; a filled marker is the rate that was chosen."""
    rates = tables["rates"]
    shown = {key: select(rates, protocol=key) for key in titles if key in set(rates["protocol"])}
    figure, axes = style.canvas(look.width_mm, HEIGHT_MM, 1, max(len(shown), 1))
    if not shown:
        return figure, style.say(axes[0, 0], "no pilot model was trained")
    for axis, (protocol, table) in zip(axes[0], shown.items(), strict=True):
        for cell, curve in split(table.sort_values("learning_rate"), CELL):
            of_arm = arm_look(cell["arm"])
            if cell["placement"] not in ("pre", "none"):
                of_arm |= {"linestyle": LOOKS[cell["placement"]]["linestyle"]}
            axis.plot(
                curve["learning_rate"],
                curve["loss"],
                label=arm_label(cell["arm"], cell["placement"]),
                mfc="none",
                **of_arm,
            )
            best = curve[curve["is_best"]]
            axis.plot(best["learning_rate"], best["loss"], **of_arm | {"linestyle": ""})
        style.log_x(axis, table["learning_rate"])
        axis.set(xlabel="learning rate", ylabel="validation loss (nats per character)")
        axis.set_title(titles[protocol])
    style.legend_below(figure, style.legend_handles(axes[0]), ncols=3)
    return figure, ""
