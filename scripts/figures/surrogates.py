"""Figure surrogates: what each surrogate backward pass costs, by where it is put."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.drawing import Look, run
from normscope.statistics.summary import select
from normscope.studies.jacobian.figures import ATTENTION, FEEDBACK, describe_outcomes, in_order
from normscope.studies.jacobian.measures import SURROGATES
from normscope.studies.jacobian.recipe import VARIED

PLACES = {"all": "all norms", "blocks": "in blocks", "final": "final norm"}


def draw_cost(axis: Axes, x: float, cost: dict, models: pd.DataFrame, marker: str) -> None:
    """Every model an open marker, a cross where it failed; the mean a dash with its interval."""
    color = ATTENTION[cost["attention"]]
    for has_failed, shape in ((False, marker), (True, "x")):
        shown = models.loc[(models["failed"] > 0) == has_failed, "cost"]
        dots: dict = {"marker": shape, "linestyle": "", "mfc": "none", "markersize": 3}
        axis.plot([x] * len(shown), shown, color=color, **dots)
    axis.plot([x - 0.08, x + 0.08], [cost["mean"]] * 2, color=color, linewidth=1.4)
    axis.vlines(x, cost["low"], cost["high"], color=color, linewidth=0.8)


def draw_costs(axis: Axes, models: pd.DataFrame, costs: pd.DataFrame) -> None:
    """A place on the x axis for every surrogate and where it is put."""
    trained = set(zip(costs["norm_backward"], costs["surrogates_in"], strict=True))
    kinds = [(rule, place) for rule in SURROGATES for place in PLACES if (rule, place) in trained]
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


def draw(tables: Mapping[str, pd.DataFrame], look: Look, protocol: str) -> tuple[Figure, str]:
    """A panel a kind of feedback, of one protocol; doses and penalties are another figure's."""
    kept = {
        name: select(table, protocol=protocol, radial_share=1.0, sigma_penalty=0.0)
        for name, table in tables.items()
    }
    runs, costs, models = (kept[name] for name in ("losses", "costs", "surrogates"))
    feedback = in_order(list(costs["feedback"]), FEEDBACK)
    arms = style.in_order(list(costs["arm"]))
    figure, axes = style.canvas(look.width_mm, 85, 1, max(1, len(feedback)), shared=False)
    for axis in axes[0, 1:]:
        axis.sharey(axes[0, 0])
    if not feedback:
        style.say(axes[0, 0], "no surrogate was trained")
    for name, axis in zip(feedback, axes[0], strict=False):
        axis.set_title(FEEDBACK[name])
        draw_costs(axis, select(models, feedback=name), select(costs, feedback=name))
    axes[0, 0].set_ylabel("cost: loss above exact (nats)")
    looks: dict[str, dict] = {name: {"color": color} for name, color in ATTENTION.items()}
    if len(arms) > 1:
        mark: dict = {"color": "0.4", "mfc": "none", "linestyle": ""}
        shapes = zip(arms, style.MARKERS, strict=False)
        looks |= {ARMS[arm].label: mark | {"marker": shape} for arm, shape in shapes}
    style.legend_below(figure, style.samples(axes[0, 0], looks), ncols=6)
    return figure, describe_outcomes(runs)


if __name__ == "__main__":
    run(draw)
