"""Figure factors: what each factor of a norm does, every trained model a point."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.drawing import Look, run
from normscope.statistics.summary import select
from normscope.studies.recall.figures import AFFINE, PANELS, describe_sample, facet

ROWS = {
    "loss": "loss (nats)",
    "calibrated_loss": "calibrated loss",
    "accuracy": "accuracy",
    "effective_rank_query": "effective rank",
    "edge": "share of Adam's limit",
}
LINEAR = ("accuracy", "effective_rank_query")
CENTER: dict[str, dict] = {
    "no": {"color": style.COLORS[2], "marker": "o"},
    "yes": {"color": style.COLORS[1], "marker": "^"},
}
OTHER: dict = {"color": style.COLORS[0], "marker": "s"}


def place(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Panel (a radius, or "other"), position and look of every run; the names of the others."""
    table = facet(runs)
    others = style.in_order(list(table.loc[table["panel"] == "other", "arm"]))
    position = {name: i for i, name in enumerate(AFFINE.values())}
    shift = table["center"].map({"no": -0.15, "yes": 0.15}).fillna(0.0)
    table["x"] = [
        position[a] if a in position else others.index(arm)
        for a, arm in zip(table["affine"], table["arm"], strict=True)
    ]
    table["x"] += shift
    return table, others


def draw_panel(axis: Axes, panel: pd.DataFrame, column: str) -> None:
    """Every model a point, the mean of a cell a dash; what diverged is a cross at the top."""
    for _, cell in panel.groupby("x"):
        x = float(cell["x"].iloc[0])
        mark = CENTER.get(cell["center"].iloc[0], OTHER)
        axis.plot(cell["x"], cell[column], markerfacecolor="none", linestyle="", **mark)
        if cell[column].notna().any():
            mean = cell[column].mean()
            axis.plot([x - 0.12, x + 0.12], [mean] * 2, color=mark["color"], linewidth=1.4)
        lost = cell[cell["diverged_at"].notna()]
        tops = np.full(len(lost), 0.97)
        cross: dict = {"marker": "x", "color": mark["color"], "linestyle": ""}
        axis.plot(lost["x"], tops, transform=axis.get_xaxis_transform(), **cross)
    axis.grid(axis="y", linewidth=0.3, color="0.85")


def name_column(top: Axes, bottom: Axes, panel: str, others: list[str]) -> None:
    """Title and x axis of the panels of a radius, or of the norms without factors."""
    is_other = panel == "other"
    top.set_title("other" if is_other else f"radius {panel}")
    names = [ARMS[arm].label for arm in others] if is_other else list(AFFINE.values())
    turned: dict = {"rotation": 90} if is_other else {}
    bottom.set_xticks(range(len(names)), names, **turned)
    bottom.set_xlim(-0.5, len(names) - 0.5)
    bottom.set_xlabel("" if is_other else "affine part")


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, task: str, learning_rate: float
) -> tuple[Figure, str]:
    """The grid of factors, of one task's runs at one learning rate."""
    runs = select(tables["runs"], task=task, learning_rate=learning_rate)
    table, others = place(runs)
    panels = [p for p in PANELS if (table["panel"] == p).any()]
    figure, axes = style.canvas(look.width_mm, 36 * len(ROWS), len(ROWS), len(panels))
    for row, (column, title) in zip(axes, ROWS.items(), strict=True):
        for axis, panel in zip(row, panels, strict=True):
            draw_panel(axis, table[table["panel"] == panel], column)
        row[0].set_ylabel(title)
        if column not in LINEAR:
            style.log_y(row[0])
    for top, bottom, panel in zip(axes[0], axes[-1], panels, strict=True):
        name_column(top, bottom, panel, others)
    figure.align_ylabels()
    looks = {f"centered: {c}": m | {"linestyle": "", "mfc": "none"} for c, m in CENTER.items()}
    style.legend_below(figure, style.samples(axes[0, 0], looks), ncols=2)
    return figure, describe_sample(runs)


if __name__ == "__main__":
    run(draw)
