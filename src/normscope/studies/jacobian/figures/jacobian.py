"""Figure jacobian: what each norm removes of the gradient, layer by layer."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import in_order
from normscope.studies.jacobian.figures import ATTENTION, FEEDBACK, describe_sample
from normscope.studies.jacobian.recipe import SETTING

MEASURES = {"r_mean": "r_mean x d", "r_radial": "r_radial x d"}
KINDS = {  # (signal, variant)
    ("own", "corrected"): ("corrected", {"marker": "o", "linestyle": "-"}),
    ("backprop", "corrected"): ("corrected, true gradient", {"marker": "", "linestyle": ":"}),
    ("own", "published"): ("as published", {"marker": "x", "linestyle": ""}),
}
NOISE = 1e-6  # a share below it is rounding
MM_PER_ROW, REST_MM = 48, 12
SHIFT = 0.3  # layers over which kinds of attention are dodged
ROOM = 2  # factor around all means; intervals of very few models are cut


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
        y, ends = part["mean"] * part["d"], (part["low"] * part["d"], part["high"] * part["d"])
        if bars:
            style.estimates(axis, part["x"], y, ends, **look)
            continue
        # of one layer a dotted line would show nothing
        dot: dict = {"marker": "_"} if place == "final" and not look["marker"] else {}
        axis.plot(part["x"], y, **look | dot)


def draw_panel(axis: Axes, panel: pd.DataFrame) -> None:
    """Lines over the norms of one protocol, arm, measure and kind of feedback."""
    axis.axhline(1, color="0.6", linewidth=0.6)
    kinds = [name for name in ATTENTION if (panel["attention"] == name).any()]
    for i, attention in enumerate(kinds):
        for (signal, variant), (_, mark) in KINDS.items():
            line = select(panel, attention=attention, signal=signal, variant=variant)
            line = line.assign(x=line["index"] + style.dodge(i, len(kinds), SHIFT))
            look = mark | {"color": ATTENTION[attention], "markersize": 3}
            is_own = (signal, variant) == ("own", "corrected")
            draw_line(axis, line.sort_values("index"), look, bars=is_own)
    ticks = panel.drop_duplicates("index").sort_values("index")
    axis.set_xticks(list(ticks["index"]), [layer_label(name) for name in ticks["layer"]])


def draw_cells(axes: np.ndarray, shown: pd.DataFrame, rows: list, columns: list) -> None:
    """All panels ``[cell, row]`` with their titles and labels."""
    name_arm = len({arm for arm, _ in rows}) > 1
    for (protocol, feedback), cell in zip(columns, axes, strict=False):
        for (arm, measure), axis, first in zip(rows, cell, axes[0], strict=False):
            axis.sharey(first)
            where = {"arm": arm, "measure": measure, "protocol": protocol, "feedback": feedback}
            panel = select(shown, **where)
            draw_panel(axis, panel)
            axis.set_title(f"{protocol}, {FEEDBACK[feedback]}, {style.sample_size(panel['n'])}")
            if style.is_first(axis):
                axis.set_ylabel(f"{f'{ARMS[arm].label}: ' * name_arm}{MEASURES[measure]}")
        cell[-1].set_xlabel("norm layer")
    for (_, measure), axis in zip(rows, axes[0], strict=False):
        means = (shown["mean"] * shown["d"])[shown["measure"] == measure]
        axis.set_ylim(means.min() / ROOM, means.max() * ROOM)
        style.log_y(axis)


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, protocols: list[str]
) -> tuple[Figure, str]:
    """The shares of the gradient's energy that norms remove, by layer, of some protocols."""
    protocols = list(dict.fromkeys(protocols))
    runs, layers = tables["losses"], tables["layers_by_cell"]
    runs = runs[runs["protocol"].isin(protocols) & (runs["norm_backward"] == "exact")]
    shown = layers[layers["measure"].isin(MEASURES) & (layers["mean"] > NOISE)]
    of_rows, of_columns = shown.groupby(["arm", "measure"]), runs.groupby(["protocol", "feedback"])
    arms = in_order(list(shown["arm"]))
    rows = [row for row in product(arms, MEASURES) if row in of_rows.groups]
    columns = [cell for cell in product(protocols, FEEDBACK) if cell in of_columns.groups]
    n = max(1, len(columns))
    figure, axes = style.wrapped(
        look.width_mm, MM_PER_ROW, REST_MM, n, rows=max(1, len(rows)), most=2
    )
    if rows:
        draw_cells(axes, shown, rows, columns)
    else:
        lost = len(runs) > 0 and runs["diverged_at"].notna().all()
        style.say(axes[0, 0], "all models diverged" if lost else "no model has a norm layer")
    looks: dict[str, dict] = {name: {"color": color} for name, color in ATTENTION.items()}
    looks["corrected, one model"] = {"marker": "o", "color": "0.4", **style.OPEN}
    looks |= {label: mark | {"color": "0.4"} for label, mark in KINDS.values()}
    style.legend_below(figure, style.samples(axes[0, 0], looks), ncols=3)
    drawn = runs.merge(shown[[*SETTING]].drop_duplicates())
    return figure, describe_sample(drawn, runs)
