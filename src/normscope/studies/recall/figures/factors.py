"""Figure factors: what each factor of a norm does, every trained model a point."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.drawing import Look
from normscope.paper.hover import MEAN
from normscope.statistics.summary import select
from normscope.studies.arms import arm_look, family, in_order
from normscope.studies.recall.figures import AFFINE, PANELS, describe_sample, facet

COLUMNS = {
    "loss": "loss (nats)",
    "calibrated_loss": "calibrated loss",
    "accuracy": "accuracy",
    "effective_rank_query": "effective rank",
    "edge": "share of\nAdam's limit",
}
MM_PER_ROW, REST_MM, LEGEND_MM = 6, 14, 12
LINEAR = ("accuracy", "effective_rank_query")
CENTER = {"no": "o", "yes": "^"}  # markers; of a norm without factors a square


def place(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Panel (a radius, or "other"), position and look of every run; the names of the others."""
    table = facet(runs)
    others = in_order(list(table.loc[table["panel"] == "other", "arm"]))
    position = {name: i for i, name in enumerate(AFFINE.values())}
    shift = table["center"].map({"no": -0.15, "yes": 0.15}).fillna(0.0)
    table["y"] = [
        position[a] if a in position else others.index(arm)
        for a, arm in zip(table["affine"], table["arm"], strict=True)
    ]
    table["y"] += shift
    return table, others


def arm_mark(run: pd.Series) -> dict:
    """Colour of an arm's family, marker by centering."""
    color = arm_look(run["arm"])["color"]
    return {"color": color, "marker": CENTER.get(run["center"], "s")}


def draw_panel(axis: Axes, panel: pd.DataFrame, column: str) -> None:
    """Every model a point, the mean of a cell a dash; what diverged is a cross at the right."""
    for _, cell in panel.groupby("y"):
        mark = arm_mark(cell.iloc[0])
        look: dict = mark | {"mfc": "none", "linestyle": ""}
        # of a norm without factors the row says the name
        names = [family(cell["arm"].iloc[0])] if cell["center"].notna().all() else []
        style.points(axis, cell[column], cell["y"], *names, **look)
        if cell[column].notna().any():
            mean, y = cell[column].mean(), cell["y"].iloc[0]
            style.dash(axis, mean, y, color=mark["color"], label=MEAN)
        lost = cell[cell["diverged_at"].notna()]
        ends = np.full(len(lost), 0.97)
        cross: dict = {"marker": "x", "color": mark["color"], "linestyle": ""}
        axis.plot(ends, lost["y"], transform=axis.get_yaxis_transform(), **cross)
    axis.grid(axis="x", linewidth=0.3, color="0.85")


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, task: str, learning_rate: float
) -> tuple[Figure, str]:
    """The grid of factors, of one task's runs at one learning rate."""
    runs = select(tables["runs"], task=task, learning_rate=learning_rate)
    table, others = place(runs)
    panels = [p for p in PANELS if (table["panel"] == p).any()]
    names = {
        p: [ARMS[arm].label for arm in others] if p == "other" else list(AFFINE.values())
        for p in panels
    }
    heights = [len(names[panel]) + REST_MM / MM_PER_ROW for panel in panels]
    figure, axes = style.canvas(
        look.width_mm,
        MM_PER_ROW * sum(heights) + LEGEND_MM,
        len(panels),
        len(COLUMNS),
        height_ratios=heights,
    )
    for line, panel in zip(axes, panels, strict=True):
        for axis, (column, title) in zip(line, COLUMNS.items(), strict=True):
            draw_panel(axis, table[table["panel"] == panel], column)
            axis.set_title(title)
        style.name_rows(line[0], names[panel])
        line[0].set_ylabel(PANELS[panel] + ", affine part" * (panel != "other"))
    for axis, column in zip(axes[0], COLUMNS, strict=True):
        style.few_ticks(axis, is_log=column not in LINEAR)
    figure.align_ylabels()
    first = table.dropna(subset="center").drop_duplicates(["center", "panel"])
    looks = {
        family(row["arm"]): arm_mark(row) | {"linestyle": "", "mfc": "none"}
        for _, row in first.iterrows()
    }
    style.legend_below(figure, style.samples(axes[0, 0], looks), ncols=4)
    return figure, describe_sample(runs)
