"""Figure surrogates: what each surrogate backward pass costs, by where it is put."""

from collections.abc import Mapping
from typing import get_args

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.nn.recipe import NormBackward
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import in_order
from normscope.studies.jacobian.figures import ATTENTION, FEEDBACK, describe_outcomes
from normscope.studies.jacobian.recipe import VARIED

PLACES = {"all": "all norms", "blocks": "in blocks", "final": "final norm"}
MM_PER_ROW, MM_PER_PANEL = 8, 14
SHIFT = 0.6  # rows over which arms and kinds of attention are dodged
LINEAR = 0.1  # nats up to which the axis is linear


def draw_cost(axis: Axes, y: float, cost: dict, models: pd.DataFrame, marker: str) -> None:
    """Every model an open marker, a cross where it failed; the mean a dash with its interval."""
    color = ATTENTION[cost["attention"]]
    for has_failed, shape in ((False, marker), (True, "x")):
        shown = models.loc[(models["failed"] > 0) == has_failed, "cost"]
        dots: dict = {"marker": shape, "linestyle": "", "mfc": "none", "markersize": 3}
        axis.plot(shown, [y] * len(shown), color=color, **dots)
    style.dash(axis, cost["mean"], y, (cost["low"], cost["high"]), color=color)


def in_rows(costs: pd.DataFrame) -> list[tuple[str, str]]:
    """Surrogate and place of every row of a panel."""
    trained = set(zip(costs["norm_backward"], costs["surrogates_in"], strict=True))
    rules = get_args(NormBackward)
    return [(rule, place) for rule in rules for place in PLACES if (rule, place) in trained]


def draw_costs(axis: Axes, models: pd.DataFrame, costs: pd.DataFrame, arms: list[str]) -> None:
    """One row per surrogate and the norms that have it."""
    kinds = in_rows(costs)
    axis.axvline(0, color="0.6", linewidth=0.6)
    groups = [(arm, attention) for arm in arms for attention in ATTENTION]
    for cost in costs.to_dict("records"):
        shift = style.dodge(groups.index((cost["arm"], cost["attention"])), len(groups), SHIFT)
        y = kinds.index((cost["norm_backward"], cost["surrogates_in"])) + shift
        cell = select(models, **{key: cost[key] for key in VARIED})
        draw_cost(axis, y, cost, cell, style.MARKERS[arms.index(cost["arm"])])
    style.name_rows(axis, [f"{rule.replace('_', ' ')}, {PLACES[place]}" for rule, place in kinds])


def draw(tables: Mapping[str, pd.DataFrame], look: Look, protocol: str) -> tuple[Figure, str]:
    """One panel per kind of feedback, for one protocol, without doses and penalties."""
    kept = {
        name: select(table, protocol=protocol, radial_share=1.0, sigma_penalty=0.0)
        for name, table in tables.items()
    }
    costs, models = (kept[name] for name in ("costs", "surrogates"))
    shown = {name: select(costs, feedback=name) for name in FEEDBACK}
    shown = {name: rows for name, rows in shown.items() if len(rows)}
    arms = in_order(list(costs["arm"]))
    counts = [len(in_rows(rows)) for rows in shown.values()] or [2]
    figure, axes = style.panel_column(look.width_mm, MM_PER_ROW, MM_PER_PANEL, counts)
    if not shown:
        style.say(axes[0], "no surrogate was trained")
    for (name, rows), axis in zip(shown.items(), axes, strict=False):
        axis.set_title(f"{FEEDBACK[name]}, {style.sample_size(rows['n'])}")
        draw_costs(axis, select(models, feedback=name), rows, arms)
    for axis in axes if shown else ():
        style.symlog(axis, LINEAR)
    axes[-1].set_xlabel("cost: loss above exact (nats)")
    looks: dict[str, dict] = {name: {"color": color} for name, color in ATTENTION.items()}
    looks |= {"one model": {"color": "0.4", "mfc": "none", "linestyle": "", "marker": "o"}}
    looks |= {"mean": {"color": "0.4", "linestyle": "", **style.DASH}}
    if len(arms) > 1:
        mark: dict = {"color": "0.4", "mfc": "none", "linestyle": ""}
        shapes = zip(arms, style.MARKERS, strict=False)
        looks |= {ARMS[arm].label: mark | {"marker": shape} for arm, shape in shapes}
    style.legend_below(figure, style.samples(axes[0], looks), ncols=6)
    return figure, describe_outcomes(costs)
