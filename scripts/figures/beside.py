"""Figure beside: the last block's gain of trained arms beside that of pretrained models."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import count, divergences
from normscope.paper.drawing import Look, run
from normscope.studies.pretrained.figures import (
    NORMS,
    OTHER,
    count_prompts,
    list_models,
    mark_one,
    norm_color,
)
from normscope.studies.pretrained.studies import FIRST_STUDIES

PLACEMENT = "pre"  # of pretrained models, and of the trained arms that are comparable
TURNED: dict = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
LOOKS: dict[str, dict] = {
    **{norm: {"color": color, "linestyle": "-"} for norm, color in NORMS.items()},
    "another norm": {"color": OTHER, "linestyle": "-"},
    "published": {"color": "0.4", "marker": "s", "mfc": "none", "linestyle": ""},
    "measured": {"color": "0.4", "marker": "s", "linestyle": ""},
}


def draw_trained(axis: Axes, gains: pd.DataFrame) -> None:
    """A marker an arm, with its interval over trained models, in the colour of its norm."""
    labels = [ARMS[arm].label for arm in gains["arm"]]
    for x, (label, row) in enumerate(zip(labels, gains.to_dict("records"), strict=True)):
        color = norm_color(label)
        axis.plot(x, row["last"], "o", color=color)
        axis.vlines(x, row["last_low"], row["last_high"], color=color)
    axis.set_xticks(range(len(gains)), labels, **TURNED)
    axis.set_title("trained here, all else equal")
    axis.set_ylabel("gain of the last block")


def draw_pretrained(axis: Axes, table: pd.DataFrame) -> None:
    """A marker a model, side by side by family; open ones are published."""
    table = table.sort_values(["norm", "family", "log_gain"], ignore_index=True)
    for x, row in enumerate(table.to_dict("records")):
        color = norm_color(row["norm"])
        fill = color if row["experiment"] == "measured" else "none"
        axis.plot(x, np.exp(row["log_gain"]), "s", color=color, mfc=fill)
        axis.vlines(x, np.exp(row["low"]), np.exp(row["high"]), color=color)
    axis.set_xticks(range(len(table)), list(table["model"]), **TURNED)
    axis.set_title("pretrained, much else unequal")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Trained and pretrained models side by side."""
    gains, runs, by_model = (tables[k] for k in ("main.gain_by_arm", "main.runs", "by_model"))
    trained = runs[runs["placement"] == PLACEMENT]
    figure, axes = style.canvas(look.width_mm, 90, 1, 2)
    draw_trained(axes[0, 0], gains[(gains["placement"] == PLACEMENT) & gains["last"].notna()])
    draw_pretrained(axes[0, 1], by_model[by_model["experiment"].isin((*FIRST_STUDIES, "measured"))])
    for axis in axes[0]:
        style.log_y(axis)
        mark_one(axis)
    style.legend_below(figure, style.samples(axes[0, 1], LOOKS), ncols=5)
    return figure, (
        f"n: {count(trained)}, bars: {look.level:.0%} t interval over trained models; "
        f"{count_prompts(by_model)} of each pretrained model, bars: bootstrap over prompts. "
        f"{divergences(trained)} {list_models(tables['models'])}"
    )


if __name__ == "__main__":
    run(draw)
