"""Figure surrogates: what each surrogate costs, and what lets one expect it."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.drawing import Look, run
from normscope.statistics.summary import select
from normscope.studies.jacobian.figures import ATTENTION, FEEDBACK, describe_sample, in_order
from normscope.studies.jacobian.measures import SURROGATES
from normscope.studies.jacobian.tables import PREDICTORS, VARIED

SHOWN = ("left_in_blocks", "left_in_final", "cosine_parameters")
MARKERS = dict(zip(SURROGATES, ("^", "s", "o"), strict=True))
MODEL: dict = {"color": "0.4", "mfc": "none"}
PLACES = {"all": "all norms", "blocks": "in blocks", "final": "final norm"}


def draw_cost(axis: Axes, x: float, cost: dict, models: pd.DataFrame, marker: str) -> None:
    """Every model an open marker, the mean a dash with its interval, a cross where one diverged."""
    color = ATTENTION[cost["attention"]]
    dots: dict = {"marker": marker, "linestyle": "", "mfc": "none", "markersize": 3}
    axis.plot([x] * len(models), models["cost"], color=color, **dots)
    axis.plot([x - 0.08, x + 0.08], [cost["mean"]] * 2, color=color, linewidth=1.4)
    axis.vlines(x, cost["low"], cost["high"], color=color, linewidth=0.8)
    axis.axhspan(-cost["margin"], cost["margin"], color=color, alpha=0.02, lw=0)
    ceiling = cost["mean"] + cost["unigram"] - cost["loss"]
    axis.plot([x - 0.2, x + 0.2], [ceiling] * 2, color=color, linewidth=0.6, linestyle=":")
    lost = int(cost["diverged"])
    cross: dict = {"marker": "x", "linestyle": "", "color": color}
    axis.plot([x] * lost, [0.97] * lost, transform=axis.get_xaxis_transform(), **cross)


def draw_costs(axis: Axes, models: pd.DataFrame, costs: pd.DataFrame, kinds: list[tuple]) -> None:
    """A place on the x axis for every surrogate and where it is put."""
    axis.axhline(0, color="0.6", linewidth=0.6)
    arms = style.in_order(list(costs["arm"]))
    groups = [(arm, attention) for arm in arms for attention in ATTENTION]
    for cost in costs.to_dict("records"):
        shift = (groups.index((cost["arm"], cost["attention"])) + 0.5) / len(groups) - 0.5
        x = kinds.index((cost["norm_backward"], cost["surrogates_in"])) + 0.6 * shift
        cell = select(models, **{key: cost[key] for key in VARIED})
        draw_cost(axis, x, cost, cell, style.MARKERS[arms.index(cost["arm"])])
    names = [f"{rule.replace('_', ' ')},\n{PLACES[place]}" for rule, place in kinds]
    axis.set_xticks(range(len(kinds)), names, rotation=60, ha="right", rotation_mode="anchor")
    axis.set_xlim(-0.6, max(1, len(kinds)) - 0.4)


def draw_prediction(axis: Axes, models: pd.DataFrame, predictor: str) -> None:
    """Cost against a predictor, every model a marker, filled where all norms are replaced."""
    axis.axhline(0, color="0.6", linewidth=0.6)
    for row in models.to_dict("records"):
        color = ATTENTION[row["attention"]]
        fill = color if row["surrogates_in"] == "all" else "none"
        mark: dict = {"marker": MARKERS[row["norm_backward"]], "color": color, "mfc": fill}
        axis.plot(row[predictor], row["cost"], linestyle="", markersize=3.5, **mark)
    axis.set_xlabel(PREDICTORS[predictor])


def legend_looks(arms: list[str]) -> dict[str, dict]:
    """What the legend shows: attention, arms where there are several, surrogates."""
    looks: dict[str, dict] = {
        name: {"color": color, "marker": "", "linestyle": "-"} for name, color in ATTENTION.items()
    }
    marks: dict[str, dict] = {}
    if len(arms) > 1:
        shapes = zip(arms, style.MARKERS, strict=False)
        marks |= {f"above: {ARMS[a].label}": MODEL | {"marker": shape} for a, shape in shapes}
    marks |= {r.replace("_", " "): {"color": "0.4", "marker": m} for r, m in MARKERS.items()}
    marks |= {"not in all norms": MODEL | {"marker": "o"}}
    return looks | {label: mark | {"linestyle": ""} for label, mark in marks.items()}


def draw(tables: Mapping[str, pd.DataFrame], look: Look, protocol: str) -> tuple[Figure, str]:
    """Costs above, and below against what predicts them, of one protocol."""
    tables = {name: table[table["protocol"] == protocol] for name, table in tables.items()}
    runs, costs, models = (tables[name] for name in ("losses", "costs", "expected"))
    trained = set(zip(costs["norm_backward"], costs["surrogates_in"], strict=True))
    kinds = [(rule, place) for rule in SURROGATES for place in PLACES if (rule, place) in trained]
    feedback = in_order(list(costs["feedback"]), FEEDBACK)
    arms = style.in_order(list(costs["arm"]))
    rows = 1 + max(1, len(arms))
    height = 85 + 60 * (rows - 1)
    figure, axes = style.canvas(look.width_mm, height, rows, len(SHOWN), shared=False)
    for line in axes:  # before anything is drawn: what is drawn later widens all
        for axis in line[1:]:
            axis.sharey(line[0])
    for axis in axes[0, max(1, len(feedback)) :]:
        axis.set_axis_off()
    if not kinds:
        style.say(axes[0, 0], "no surrogate was trained")
    for name, axis in zip(feedback, axes[0], strict=False):
        axis.set_title(FEEDBACK[name])
        own = costs[costs["feedback"] == name]
        draw_costs(axis, models[models["feedback"] == name], own, kinds)
    for line, arm in zip(axes[1:], arms, strict=False):
        for predictor, axis in zip(SHOWN, line, strict=True):
            draw_prediction(axis, models[models["arm"] == arm], predictor)
        line[0].set_title(ARMS[arm].label)
    for axis in axes[:, 0]:
        axis.set_ylabel("cost: loss above exact (nats)")
    style.legend_below(figure, style.samples(axes[1, 0], legend_looks(arms)), ncols=6)
    return figure, describe_sample(runs)


if __name__ == "__main__":
    run(draw)
