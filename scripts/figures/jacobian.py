"""Figure jacobian: what each norm removes of the gradient, layer by layer."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.drawing import Look, run
from normscope.statistics.summary import select
from normscope.studies.jacobian.figures import ATTENTION, FEEDBACK, describe_sample, in_order

MEASURES = {"r_mean": "r_mean x d", "r_radial": "r_radial x d"}
KINDS = {  # (signal, variant)
    ("own", "corrected"): ("corrected", {"marker": "o", "linestyle": "-"}),
    ("backprop", "corrected"): ("corrected, true gradient", {"marker": "", "linestyle": ":"}),
    ("own", "published"): ("as published", {"marker": "x", "linestyle": ""}),
}
NOISE = 1e-6  # a share below it is rounding
MM_PER_ROW, REST_MM = 42, 40


def layer_label(layer: str) -> str:
    """``0a`` for the norm before attention in block 0, ``0m`` the MLP's; a prime for a second."""
    if layer == "final_norm":
        return "final"
    _, block, branch, side = layer.split(".")
    return f"{block}{branch[0]}{chr(39) * (side == 'after')}"


def draw_line(axis: Axes, line: pd.DataFrame, look: dict, *, bars: bool) -> None:
    """Over the block norms, the final norm apart; bars are intervals over models."""
    for place in ("block", "final"):
        part = line[line["place"] == place]
        # of one layer a dotted line would show nothing
        dot: dict = {"marker": "_"} if place == "final" and not look["marker"] else {}
        axis.plot(part["index"], part["mean"] * part["d"], **look | dot)
        if bars:
            low, high = part["low"] * part["d"], part["high"] * part["d"]
            axis.vlines(part["index"], low, high, color=look["color"], linewidth=0.8)


def draw_panel(axis: Axes, panel: pd.DataFrame) -> None:
    """Lines over the norms of one protocol, arm, measure and kind of feedback."""
    axis.axhline(1, color="0.6", linewidth=0.6)
    for attention in in_order(list(panel["attention"]), ATTENTION):
        for (signal, variant), (_, mark) in KINDS.items():
            line = select(panel, attention=attention, signal=signal, variant=variant)
            look = mark | {"color": ATTENTION[attention], "markersize": 3}
            is_own = (signal, variant) == ("own", "corrected")
            draw_line(axis, line.sort_values("index"), look, bars=is_own)
    ticks = panel.drop_duplicates("index").sort_values("index")
    labels = [layer_label(name) for name in ticks["layer"]]
    axis.set_xticks(list(ticks["index"]), labels, rotation=90)


def grid(
    runs: pd.DataFrame, shown: pd.DataFrame, protocols: list[str]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The panels: arm and measure of every row, protocol and feedback of every column."""
    rows = [
        (arm, measure)
        for arm in style.in_order(list(shown["arm"]))
        for measure in MEASURES
        if len(select(shown, arm=arm, measure=measure))
    ]
    columns = [
        (protocol, feedback)
        for protocol in protocols
        for feedback in in_order(list(runs["feedback"]), FEEDBACK)
        if len(select(runs, protocol=protocol, feedback=feedback))
    ]
    return rows, columns


def draw_rows(axes: np.ndarray, shown: pd.DataFrame, rows: list, columns: list) -> None:
    """All panels, and what stands beside them."""
    name_arm = len({arm for arm, _ in rows}) > 1
    for (arm, measure), line in zip(rows, axes, strict=False):
        for (protocol, feedback), axis in zip(columns, line, strict=True):
            draw_panel(
                axis,
                select(shown, arm=arm, measure=measure, protocol=protocol, feedback=feedback),
            )
        line[0].set_ylabel(f"{f'{ARMS[arm].label}: ' * name_arm}{MEASURES[measure]}")
        style.log_y(line[0])
    for (protocol, feedback), top, bottom in zip(columns, axes[0], axes[-1], strict=False):
        top.set_title(f"{protocol},\n{FEEDBACK[feedback]}")
        bottom.set_xlabel("norm layer")


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, protocols: list[str]
) -> tuple[Figure, str]:
    """The shares of the gradient's energy that norms remove, by layer, of some protocols."""
    protocols = list(dict.fromkeys(protocols))
    runs, layers = tables["losses"], tables["layers_by_cell"]
    runs = runs[runs["protocol"].isin(protocols) & (runs["norm_backward"] == "exact")]
    shown = layers[layers["measure"].isin(MEASURES) & (layers["mean"] > NOISE)]
    rows, columns = grid(runs, shown, protocols)
    height = MM_PER_ROW * max(1, len(rows)) + REST_MM
    figure, axes = style.canvas(look.width_mm, height, max(1, len(rows)), max(1, len(columns)))
    if not rows:
        lost = len(runs) > 0 and runs["diverged_at"].notna().all()
        style.say(axes[0, 0], "all models diverged" if lost else "no model has a norm layer")
    draw_rows(axes, shown, rows, columns)
    looks: dict[str, dict] = {name: {"color": color} for name, color in ATTENTION.items()}
    looks |= {label: mark | {"color": "0.4"} for label, mark in KINDS.values()}
    style.legend_below(figure, style.samples(axes[0, 0], looks), ncols=5)
    return figure, describe_sample(runs)


if __name__ == "__main__":
    run(draw)
