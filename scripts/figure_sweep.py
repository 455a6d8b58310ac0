"""Rule figure_sweep: what the learning rate does to each arm, and where each arm is best."""

from pathlib import Path

import pandas as pd
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.studies.recall.figure import AFFINE, PANELS, faceted, mark_divergence, n_of
from normscope.studies.recall.tables import best_rates, swept

ROWS = {"loss": "loss (nats)", "accuracy": "accuracy"}
MM_PER_ROW, LEGEND_MM = 38, 20


class Flags(FigureFlags):
    """Draw loss and accuracy against the learning rate."""

    runs: Path


def look(run: pd.Series, others: list[str]) -> dict:
    """Colour by affine part and marker by centering; norms without factors as everywhere."""
    if run["panel"] == "other":
        return style.look(run["arm"], others) | {"label": ARMS[run["arm"]].label}
    color = style.COLORS[list(AFFINE.values()).index(run["affine"])]
    centered = run["center"] == "yes"
    label = f"affine: {run['affine']}{', centered' if centered else ''}"
    line = {"linestyle": "--" if centered else "-", "marker": "^" if centered else "o"}
    return {"color": color, "label": label} | line


def draw(axis, panel: pd.DataFrame, column: str, others: list[str]) -> None:
    """Every model an open marker, means joined, the best rate filled."""
    best = best_rates(panel).set_index("arm")["best"].to_dict()
    for arm in style.in_order(list(panel["arm"])):
        of_arm = panel[panel["arm"] == arm]
        looks = look(of_arm.iloc[0], others)
        dots = looks | {"linestyle": "", "label": None}
        axis.plot(of_arm["learning_rate"], of_arm[column], markerfacecolor="none", **dots)
        means = of_arm.groupby("learning_rate")[column].mean()
        axis.plot(means, **looks | {"marker": ""})
        if pd.notna(best.get(arm)):
            axis.plot(best[arm], means[best[arm]], **dots)
    mark_divergence(axis, panel, "learning_rate")
    axis.set_xscale("log")


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    runs = faceted(swept(pd.read_csv(flags.runs)))
    others = list(runs.loc[runs["panel"] == "other", "arm"])
    tasks = list(dict.fromkeys(runs["task"]))
    panels = [panel for panel in PANELS if (runs["panel"] == panel).any()] or ["none"]
    rows = [(task, column) for task in tasks for column in ROWS] or [("", "loss")]
    height = MM_PER_ROW * len(rows) + LEGEND_MM
    figure, axes = style.canvas(flags.width_mm, height, len(rows), len(panels))
    if not tasks:
        axes[0, 0].text(0.5, 0.5, "no arm has two learning rates", ha="center")
    for (task, column), line in zip(rows, axes, strict=True):
        for axis, panel in zip(line, panels, strict=True):
            there = runs[(runs["task"] == task) & (runs["panel"] == panel)]
            if len(there):
                draw(axis, there, column, others)
        line[0].set_ylabel(f"{task}: {ROWS[column]}")
        if column == "loss":
            style.log_y(line[0])
    for top, bottom, panel in zip(axes[0], axes[-1], panels, strict=True):
        top.set_title(panel if panel in ("other", "none") else f"radius {panel}")
        bottom.set_xlabel("learning rate")
    handles = {}
    for axis in axes.flat:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    style.save(figure, flags.out)
    n = n_of(runs) if tasks else "No arm has two learning rates in this configuration."
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
