"""Rule figure_factors: what each factor of a norm does, every trained model a point."""

from pathlib import Path

import numpy as np
import pandas as pd
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.studies.recall.figure import AFFINE, PANELS, faceted, n_of

ROWS = {
    "loss": "loss (nats)",
    "calibrated_loss": "calibrated loss",
    "accuracy": "accuracy",
    "effective_rank_query": "effective rank",
    "sharpness": "sharpness",
}
LINEAR = ("accuracy", "effective_rank_query")
CENTER = {
    "no": {"color": style.COLORS[2], "marker": "o"},
    "yes": {"color": style.COLORS[1], "marker": "^"},
}
OTHER = {"color": style.COLORS[0], "marker": "s"}


class Flags(FigureFlags):
    """Draw the factor grid."""

    runs: Path
    task: str
    learning_rate: float


def place(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Panel (a radius, or "other"), position and look of every run; the names of the others."""
    table = faceted(runs)
    others = style.in_order(list(table.loc[table["panel"] == "other", "arm"]))
    position = {name: i for i, name in enumerate(AFFINE.values())}
    shift = table["center"].map({"no": -0.15, "yes": 0.15}).fillna(0.0)
    table["x"] = [
        position[a] if a in position else others.index(arm)
        for a, arm in zip(table["affine"], table["arm"], strict=True)
    ]
    table["x"] += shift
    return table, others


def draw(axis, panel: pd.DataFrame, column: str) -> None:
    """Every model a point, the mean of a cell a dash; what diverged is a cross at the top."""
    for _, cell in panel.groupby("x"):
        x = float(cell["x"].iloc[0])
        looks = CENTER.get(cell["center"].iloc[0], OTHER)
        axis.plot(cell["x"], cell[column], markerfacecolor="none", linestyle="", **looks)
        if cell[column].notna().any():
            mean = cell[column].mean()
            axis.plot([x - 0.12, x + 0.12], [mean] * 2, color=looks["color"], linewidth=1.4)
        lost = cell[cell["diverged_at"].notna()]
        tops = np.full(len(lost), 0.97)
        cross = {"marker": "x", "color": looks["color"], "linestyle": ""}
        axis.plot(lost["x"], tops, transform=axis.get_xaxis_transform(), **cross)


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    runs = pd.read_csv(flags.runs)
    runs = runs[(runs["task"] == flags.task) & (runs["learning_rate"] == flags.learning_rate)]
    table, others = place(runs)
    panels = [p for p in PANELS if (table["panel"] == p).any()]
    figure, axes = style.canvas(flags.width_mm, 36 * len(ROWS), len(ROWS), len(panels))
    for row, (column, title) in enumerate(ROWS.items()):
        for axis, panel in zip(axes[row], panels, strict=True):
            draw(axis, table[table["panel"] == panel], column)
            axis.grid(axis="y", linewidth=0.3, color="0.85")
        axes[row, 0].set_ylabel(title)
        if column not in LINEAR:
            style.log_y(axes[row, 0])
    for axis, bottom, panel in zip(axes[0], axes[-1], panels, strict=True):
        axis.set_title("other" if panel == "other" else f"radius {panel}")
        names = [ARMS[a].label for a in others] if panel == "other" else list(AFFINE.values())
        turn = {"rotation": 90} if panel == "other" else {}
        bottom.set_xticks(range(len(names)), names, **turn)
        bottom.set_xlim(-0.5, len(names) - 0.5)
        bottom.set_xlabel("" if panel == "other" else "affine part")
    figure.align_ylabels()
    for center, looks in CENTER.items():
        axes[0, 0].plot([], [], label=f"centered: {center}", linestyle="", mfc="none", **looks)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    style.save(figure, flags.out)
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n_of(runs)))


if __name__ == "__main__":
    report(main)
