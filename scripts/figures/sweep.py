"""Figure sweep: what the learning rate does to each arm, and where each arm is best."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.drawing import Look, run
from normscope.statistics.summary import select
from normscope.studies.recall.figures import (
    AFFINE,
    PANELS,
    describe_sample,
    facet,
    mark_divergence,
)
from normscope.studies.recall.tables import best_rates, swept

ROWS = {"loss": "loss (nats)", "accuracy": "accuracy"}
MM_PER_ROW, LEGEND_MM = 38, 20


def run_look(row: pd.Series, others: list[str]) -> dict:
    """Colour by affine part and marker by centering; norms without factors as everywhere."""
    if row["panel"] == "other":
        return style.arm_look(row["arm"], others) | {"label": ARMS[row["arm"]].label}
    color = style.COLORS[list(AFFINE.values()).index(row["affine"])]
    is_centered = row["center"] == "yes"
    label = f"affine: {row['affine']}{', centered' if is_centered else ''}"
    line = {"linestyle": "--" if is_centered else "-", "marker": "^" if is_centered else "o"}
    return {"color": color, "label": label} | line


def draw_panel(axis: Axes, panel: pd.DataFrame, column: str, others: list[str]) -> None:
    """Every model an open marker, means joined, the best rate filled."""
    best = best_rates(panel).set_index("arm")["best"].to_dict()
    for arm in style.in_order(list(panel["arm"])):
        runs = panel[panel["arm"] == arm]
        line: dict = run_look(runs.iloc[0], others)
        joined: dict = line | {"marker": ""}
        dots: dict = line | {"linestyle": "", "label": None}
        axis.plot(runs["learning_rate"], runs[column], markerfacecolor="none", **dots)
        means = runs.groupby("learning_rate")[column].mean()
        axis.plot(means, **joined)
        if pd.notna(best.get(arm)):
            axis.plot(best[arm], means[best[arm]], **dots)
    mark_divergence(axis, panel, "learning_rate")
    axis.set_xscale("log")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Loss and accuracy against the learning rate."""
    runs = facet(swept(tables["runs"]))
    others = list(runs.loc[runs["panel"] == "other", "arm"])
    tasks = list(dict.fromkeys(runs["task"]))
    panels = [panel for panel in PANELS if (runs["panel"] == panel).any()] or ["none"]
    rows = [(task, column) for task in tasks for column in ROWS] or [("", "loss")]
    height = MM_PER_ROW * len(rows) + LEGEND_MM
    figure, axes = style.canvas(look.width_mm, height, len(rows), len(panels))
    if not tasks:
        style.say(axes[0, 0], "no arm has two learning rates")
    for (task, column), line in zip(rows, axes, strict=True):
        for axis, panel in zip(line, panels, strict=True):
            shown = select(runs, task=task, panel=panel)
            if len(shown):
                draw_panel(axis, shown, column, others)
        line[0].set_ylabel(f"{task}: {ROWS[column]}")
        if column == "loss":
            style.log_y(line[0])
    for top, bottom, panel in zip(axes[0], axes[-1], panels, strict=True):
        top.set_title(panel if panel in ("other", "none") else f"radius {panel}")
        bottom.set_xlabel("learning rate")
    style.legend_below(figure, style.labelled(axes.flat), ncols=5)
    n = describe_sample(runs) if tasks else "No arm has two learning rates in this configuration."
    return figure, n


if __name__ == "__main__":
    run(draw)
