"""Rule figure_loss: validation loss by arm and placement, every seed a point."""

from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption, count, divergences
from normscope.studies.main.pages import name

MM_PER_ROW, PAGE_MM = 6, 230
NEAR = (0.98, 1.06)  # what the right panel shows, as a share of the baseline's loss


class Flags(FigureFlags):
    """Draw validation loss by arm and placement."""

    runs: Path
    arms: Path
    baseline: str = Field(description="arm-placement around which the right panel is drawn")


def draw(axis, rows: list[tuple[str, str]], runs: pd.DataFrame, arms: pd.DataFrame) -> None:
    """A line of markers for each arm and placement, with mean and interval where n > 1."""
    for y, (arm, placement) in enumerate(rows):
        looks = style.look(arm, list(runs["arm"])) | {"linestyle": ""}
        at = (runs["arm"] == arm) & (runs["placement"] == placement)
        losses = runs.loc[at, "val_loss"].dropna()
        axis.plot(losses, np.full(len(losses), y), markerfacecolor="none", **looks)
        row = arms[(arms["arm"] == arm) & (arms["placement"] == placement)].iloc[0]
        if row["n"] > 1:
            axis.plot([row["low"], row["high"]], [y, y], color=looks["color"], linewidth=1)
            axis.plot([row["mean"]] * 2, [y - 0.35, y + 0.35], color=looks["color"], linewidth=1.6)
        if not len(losses):
            axis.text(0.02, y, "diverged", transform=axis.get_yaxis_transform(), va="center")
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.grid(axis="x", linewidth=0.3, color="0.85")
    axis.set_axisbelow(True)


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    runs, arms = pd.read_csv(flags.runs), pd.read_csv(flags.arms)
    there = set(zip(runs["arm"], runs["placement"], strict=True))
    placements = list(dict.fromkeys(runs["placement"]))
    grid = [(a, p) for a in style.in_order(list(runs["arm"])) for p in placements]
    rows = [key for key in grid if key in there]
    figure, axes = style.canvas(flags.width_mm, min(20 + MM_PER_ROW * len(rows), PAGE_MM), 1, 2)
    for axis in axes[0]:
        draw(axis, rows, runs, arms)
    axes[0, 0].set_yticks(range(len(rows)), [name(*key) for key in rows])
    baseline = arms.loc[arms["arm"] + "-" + arms["placement"] == flags.baseline, "mean"].iloc[0]
    near = ""
    if np.isfinite(baseline):
        axes[0, 1].set_xlim(NEAR[0] * baseline, NEAR[1] * baseline)
        near = f"Right: the same from {NEAR[0] * baseline:.2f} to {NEAR[1] * baseline:.2f}."
    figure.supxlabel("validation loss (nats per character, whole split)", fontsize=flags.font_pt)
    style.save(figure, flags.out)
    bars = f"Bars: {flags.level:.0%} t interval and mean, where n > 1."
    n = f"{near} n: {count(runs)}. {bars} {divergences(runs)}"
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
