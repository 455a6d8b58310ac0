"""Rule figure_loss: validation loss by arm and placement, every seed a point."""

from pathlib import Path

import numpy as np
import pandas as pd
from pydantic_settings import CliApp

from normscope import style
from normscope.arms import ARMS
from normscope.figure import FigureFlags, caption, count, divergences
from normscope.files import write_text

MM_PER_ROW = 6


class Flags(FigureFlags):
    """Draw validation loss by arm and placement."""

    runs: Path
    arms: Path


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    runs, arms = pd.read_csv(flags.runs), pd.read_csv(flags.arms)
    placements = list(dict.fromkeys(runs["placement"]))
    rows = [(a, p) for a in style.in_order(list(runs["arm"])) for p in placements]
    rows = [key for key in rows if key in set(zip(runs["arm"], runs["placement"], strict=True))]
    figure, axes = style.canvas(flags.width_mm, 18 + MM_PER_ROW * len(rows), 1, 1)
    axis = axes[0, 0]
    for y, (arm, placement) in enumerate(rows):
        looks = style.look(arm, list(runs["arm"])) | {"linestyle": ""}
        at = (runs["arm"] == arm) & (runs["placement"] == placement)
        losses = runs.loc[at, "val_loss"].dropna()
        axis.plot(losses, np.full(len(losses), y), markerfacecolor="none", **looks)
        row = arms[(arms["arm"] == arm) & (arms["placement"] == placement)].iloc[0]
        if row["n"] > 1:
            axis.plot([row["low"], row["high"]], [y, y], color=looks["color"], linewidth=1)
            axis.plot([row["mean"]] * 2, [y - 0.3, y + 0.3], color=looks["color"], linewidth=1.6)
        if not len(losses):
            axis.text(0.02, y, "diverged", transform=axis.get_yaxis_transform(), va="center")
    axis.set_yticks(
        range(len(rows)),
        [f"{ARMS[a].label}, {p}" if p != "none" else ARMS[a].label for a, p in rows],
    )
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlabel("validation loss (nats per character, whole split)")
    axis.grid(axis="x", linewidth=0.3, color="0.85")
    axis.set_axisbelow(True)
    style.save(figure, flags.out)
    bars = f"Bars: {flags.level:.0%} t interval and mean, where n > 1."
    n = f"n: {count(runs)}. {bars} {divergences(runs)}"
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    main()
