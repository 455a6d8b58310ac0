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
CENTER = {"no": "o", "yes": "^"}  # markers; of a norm without factors a square


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


def arm_mark(run: pd.Series) -> dict:
    """Colour of an arm's family, marker by centering."""
    color = style.arm_look(run["arm"])["color"]
    return {"color": color, "marker": CENTER.get(run["center"], "s")}


def draw_panel(axis: Axes, panel: pd.DataFrame, column: str) -> None:
    """Every model a point, the mean of a cell a dash; what diverged is a cross at the top."""
    for _, cell in panel.groupby("x"):
        x = float(cell["x"].iloc[0])
        mark = arm_mark(cell.iloc[0])
        axis.plot(cell["x"], cell[column], markerfacecolor="none", linestyle="", **mark)
        if cell[column].notna().any():
            mean = cell[column].mean()
            axis.plot([x - 0.12, x + 0.12], [mean] * 2, color=mark["color"], linewidth=1.4)
        lost = cell[cell["diverged_at"].notna()]
        tops = np.full(len(lost), 0.97)
        cross: dict = {"marker": "x", "color": mark["color"], "linestyle": ""}
        axis.plot(lost["x"], tops, transform=axis.get_xaxis_transform(), **cross)
    axis.grid(axis="y", linewidth=0.3, color="0.85")


def name_column(bottom: Axes, panel: str, others: list[str]) -> None:
    """The x axis of the panels of a radius, or of the norms without factors."""
    is_other = panel == "other"
    names = [ARMS[arm].label for arm in others] if is_other else list(AFFINE.values())
    turned: dict = style.TURNED if is_other else {}
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
            axis.set_title(PANELS[panel])
        row[0].set_ylabel(title)
        if column not in LINEAR:
            style.log_y(row[0])
    for bottom, panel in zip(axes[-1], panels, strict=True):
        name_column(bottom, panel, others)
    figure.align_ylabels()
    first = table.dropna(subset="center").drop_duplicates(["center", "panel"])
    looks = {
        style.family(row["arm"]): arm_mark(row) | {"linestyle": "", "mfc": "none"}
        for _, row in first.iterrows()
    }
    style.legend_below(figure, style.samples(axes[0, 0], looks), ncols=4)
    return figure, describe_sample(runs)


if __name__ == "__main__":
    run(draw)
