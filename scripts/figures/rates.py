"""Figure rates: what the learning rate does to each arm's validation loss."""

from collections.abc import Mapping, Sequence
from typing import get_args

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.nn.recipe import Placement
from normscope.paper import style
from normscope.paper.caption import count, divergences
from normscope.paper.drawing import Look, run
from normscope.statistics.summary import select
from normscope.studies.main.figures import AS_NOTHING_KNOWN, placement_title

FEWEST = 3  # rates with which there is something to see
MM_PER_ROW, LEGEND_MM = 62, 25


def draw_panel(axis: Axes, runs: pd.DataFrame, arms: Sequence[str]) -> None:
    """Every model an open marker, a cross where it failed; medians over seeds joined."""
    for arm in style.in_order(list(runs["arm"])):
        own, look = runs[runs["arm"] == arm], style.arm_look(arm, arms)
        joined: dict = look | {"marker": ""}
        dots: dict = look | {"linestyle": "", "markersize": 3}
        axis.plot(own.groupby("learning_rate")["capped_loss"].median(), **joined)
        learned, failed = own[own["failed"] == 0], own[own["failed"] == 1]
        axis.plot(learned["learning_rate"], learned["capped_loss"], mfc="none", **dots)
        crosses: dict = dots | {"marker": "x"}
        axis.plot(failed["learning_rate"], failed["capped_loss"], **crosses)
        axis.plot([], [], label=ARMS[arm].label, mfc="none", **look)
    rates = sorted(runs["learning_rate"].unique())
    axis.set_xscale("log")
    axis.set_xticks(rates, [f"{rate:g}" for rate in rates], rotation=60)
    axis.minorticks_off()


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, protocols: Sequence[str]
) -> tuple[Figure, str]:
    """A row a protocol, a column a placement: loss against the learning rate."""
    runs = tables["runs"]
    tried = runs.groupby(["protocol", "arm", "placement"])["learning_rate"].transform("nunique")
    runs = runs[runs["protocol"].isin(protocols) & (tried >= FEWEST)]
    rows = list(dict.fromkeys(runs["protocol"])) or [""]
    columns = [p for p in get_args(Placement) if (runs["placement"] == p).any()] or [""]
    height = MM_PER_ROW * len(rows) + LEGEND_MM
    figure, axes = style.canvas(look.width_mm, height, len(rows), len(columns), shared=False)
    if runs.empty:
        words = f"no arm has {FEWEST} learning rates"
        style.say(axes[0, 0], words)
        return figure, f"Here {words}."
    for protocol, line in zip(rows, axes, strict=True):
        for placement, axis in zip(columns, line, strict=True):
            axis.sharey(line[0])
            own = select(runs, protocol=protocol, placement=placement)
            if own.empty:
                axis.set_axis_off()
                continue
            draw_panel(axis, own, list(runs["arm"]))
            axis.set_title(f"{protocol}, {placement_title(placement)}")
            axis.set_xlabel("learning rate")
        line[0].set_ylabel("validation loss (nats)")
    style.legend_below(figure, style.labelled(figure.axes), ncols=4)
    by = ("protocol", "arm", "placement", "learning_rate")
    lost = divergences(runs, by, AS_NOTHING_KNOWN)
    return figure, f"n: {count(runs, ('protocol', 'arm', 'placement'))} at each rate. {lost}"


if __name__ == "__main__":
    run(draw)
