"""Figure sweep: what the learning rate does to each arm, and where each arm is best."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.recall.figures import PANELS, describe_sample, facet, mark_divergence
from normscope.studies.recall.tabulate import best_rates

ROWS = {"loss": "loss (nats)", "accuracy": "accuracy"}
MM_PER_PANEL, LEGEND_MM = 38, 20
ASIDE = 0.13  # octaves for each of the arms, which stand side by side

FULL = 1.02  # above all accuracies


def draw_panel(axis: Axes, panel: pd.DataFrame, column: str) -> None:
    """Every model an open marker, means joined, the best rate filled."""
    best = best_rates(panel).set_index("arm")["best"].to_dict()
    arms = style.in_order(list(panel["arm"]))
    for i, arm in enumerate(arms):
        aside = 2 ** style.aside(i, len(arms), ASIDE * len(arms))
        runs, look = panel[panel["arm"] == arm], style.arm_look(arm)
        dots: dict = look | {"linestyle": "", "markersize": 3}
        axis.plot(runs["learning_rate"] * aside, runs[column], markerfacecolor="none", **dots)
        means = runs.groupby("learning_rate")[column].mean()
        joined: dict = look | {"marker": ""}
        axis.plot(means.index * aside, means, **joined)
        if pd.notna(best.get(arm)):
            axis.plot(best[arm] * aside, means[best[arm]], **dots)
        axis.plot([], [], label=ARMS[arm].label, markerfacecolor="none", **look)
    mark_divergence(axis, panel, "learning_rate")
    style.log_x(axis, panel["learning_rate"])


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Loss and accuracy against the learning rate, a cell a task and radius."""
    runs = tables["runs"]
    tried = runs.groupby(["task", "arm"])["learning_rate"].transform("nunique")
    runs = facet(runs[tried >= style.FEWEST_RATES])
    grid = [(task, panel) for task in dict.fromkeys(runs["task"]) for panel in PANELS]
    cells = {key: own for key in grid if len(own := select(runs, task=key[0], panel=key[1]))}
    figure, axes = style.wrapped(
        look.width_mm, MM_PER_PANEL, LEGEND_MM, max(1, len(cells)), rows=len(ROWS)
    )
    if not cells:
        words = f"no arm has {style.FEWEST_RATES} learning rates"
        style.say(axes[0, 0], words)
        return figure, f"Here {words}."
    first: dict[tuple[str, str], Axes] = {}
    for ((task, panel), own), cell in zip(cells.items(), axes, strict=True):
        for axis, (column, title) in zip(cell, ROWS.items(), strict=True):
            axis.sharey(first.setdefault((task, column), axis))
            draw_panel(axis, own, column)
            axis.set_title(f"{task},\n{PANELS[panel]}")
            if style.is_first(axis):
                axis.set_ylabel(title)
        cell[-1].set_xlabel("learning rate")
    for (_, column), axis in first.items():
        if column == "loss":
            style.log_y(axis)
        else:
            axis.set_ylim(top=FULL)
    style.arm_legend(figure)
    return figure, describe_sample(runs)
