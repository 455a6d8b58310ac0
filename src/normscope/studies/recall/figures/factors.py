"""Figure factors: what each factor of a norm does, at the rates at which statements are decided."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import describe, select
from normscope.statistics.tuning import chosen
from normscope.studies.arms import arm_look, family
from normscope.studies.recall.figures import describe_arm, describe_sample
from normscope.studies.recall.tables import LEVELS

COLUMNS = {
    "loss": "loss (nats)",
    "calibrated_loss": "calibrated\nloss (nats)",
    "accuracy": "accuracy",
    "effective_rank_query": "effective rank",
    "edge": "share of\nAdam's limit",
}
MM_PER_ROW, REST_MM, LEGEND_MM = 4.5, 14, 12
LINEAR = ("accuracy", "effective_rank_query")
AFFINE = {  # (gain, bias)
    ("no", "no"): "none",
    ("yes", "no"): "gain",
    ("no", "yes"): "bias",
    ("yes", "yes"): "both",
}
PANELS = {**{radius: f"radius {radius}" for radius in LEVELS["radius"]}, "other": "other norms"}
CENTER = {"no": "o", "yes": "^"}  # markers; of a norm without factors a square


def facet(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with the panel and the row of their norm.

    A panel is a radius, and its rows are affine parts and centering; a norm without such factors is
    in the panel "other", by its label.
    """
    is_crossed = runs["radius"].isin(LEVELS["radius"])
    affine = pd.Series([*zip(runs["gain"], runs["bias"], strict=True)], runs.index, dtype=object)
    affine = affine.map(AFFINE).where(is_crossed)
    names = affine + runs["center"].map({"no": "", "yes": ", centered"})
    labels = {name: arm.label for name, arm in ARMS.items()}
    return runs.assign(
        affine=affine,
        center=runs["center"].where(is_crossed),
        panel=runs["radius"].where(is_crossed, "other"),
        row=names.where(is_crossed, runs["arm"].map(labels)),
    )


def rows_of(panel: pd.DataFrame) -> list[pd.DataFrame]:
    """The models of each row, by affine part and in the order of the registry."""
    orders = {"affine": [*AFFINE.values()], "arm": [*ARMS]}
    ranks = {name: {value: i for i, value in enumerate(values)} for name, values in orders.items()}
    by_row = panel.sort_values([*ranks], kind="stable", key=lambda c: c.map(ranks[str(c.name)]))
    return [cell for _, cell in by_row.groupby("arm", sort=False)]


def arm_mark(run: pd.Series) -> dict:
    """Colour of an arm's family, marker by centering."""
    color = arm_look(run["arm"])["color"]
    return {"color": color, "marker": CENTER.get(run["center"], "s")}


def draw_panel(axis: Axes, panel: pd.DataFrame, column: str, level: float) -> None:
    """Every model a point, the mean of an arm a dash; what diverged is a cross at the right.

    Where the axis is logarithmic, the mean is geometric and its interval is one of logarithms.
    """
    for y, cell in enumerate(rows_of(panel)):
        mark = arm_mark(cell.iloc[0])
        look: dict = mark | {"mfc": "none", "linestyle": "", "markersize": 3}
        axis.plot(cell[column], np.full(len(cell), y), **look)
        summary = describe(cell[column], level, geometric=column not in LINEAR)
        if summary["n"]:
            ends = summary["low"], summary["high"]
            style.dash(axis, summary["mean"], y, ends, color=mark["color"])
        lost = int(cell["diverged_at"].notna().sum())
        cross: dict = {"marker": "x", "color": mark["color"], "linestyle": ""}
        axis.plot([0.97] * lost, [y] * lost, transform=axis.get_yaxis_transform(), **cross)
    axis.grid(axis="x", linewidth=0.3, color="0.85")


def draw(tables: Mapping[str, pd.DataFrame], look: Look, task: str) -> tuple[Figure, str]:
    """The norms by their factors, of one task's runs at the rates chosen for each arm."""
    runs = select(tables["runs"], task=task)
    tried = runs.groupby("arm")["learning_rate"].nunique()
    table = facet(chosen(runs, ["arm"], by="loss"))
    panels = [p for p in PANELS if (table["panel"] == p).any()]
    shown = {p: table[table["panel"] == p] for p in panels}
    heights = [panel["arm"].nunique() + REST_MM / MM_PER_ROW for panel in shown.values()]
    figure, axes = style.canvas(
        look.width_mm,
        MM_PER_ROW * sum(heights) + LEGEND_MM,
        len(panels),
        len(COLUMNS),
        height_ratios=heights,
    )
    for line, (panel, models) in zip(axes, shown.items(), strict=True):
        for axis, (column, title) in zip(line, COLUMNS.items(), strict=True):
            draw_panel(axis, models, column, look.level)
            axis.set_title(title)
        cells = rows_of(models)
        style.name_rows(line[0], [cell["row"].iloc[0] for cell in cells])
        notes = [describe_arm(cell, tried[cell["arm"].iloc[0]]) for cell in cells]
        style.annotate_rows(line[-1], notes)
        line[0].set_ylabel(PANELS[panel] + ", affine part" * (panel != "other"))
    for axis, column in zip(axes[0], COLUMNS, strict=True):
        style.few_ticks(axis, is_log=column not in LINEAR)
    figure.align_ylabels()
    first = table.dropna(subset="center").drop_duplicates(["center", "panel"])
    looks = {
        family(row["arm"]): arm_mark(row) | {"linestyle": "", "mfc": "none"}
        for _, row in first.iterrows()
    }
    looks[style.MEAN] = style.DASH | {"color": "0.4", "linestyle": ""}
    style.legend_below(figure, style.samples(axes[0, 0], looks), ncols=5)
    bars = f"Bars: {look.level:.0%} t intervals over models."
    return figure, f"{describe_sample(table)} {bars}"
