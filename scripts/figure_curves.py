"""Rule figure_curves: training and validation loss against the step, a panel per placement."""

from pathlib import Path

import pandas as pd
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption, count, divergences

TICKS = (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 7, 10, 15, 20)
BINS = 40  # points of a smoothed training curve


class Flags(FigureFlags):
    """Draw loss curves."""

    runs: Path
    curves: Path


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    runs, curves = pd.read_csv(flags.runs), pd.read_csv(flags.curves)
    placements = list(dict.fromkeys(runs["placement"]))
    width = max(1, curves["step"].max() // BINS)
    curves["bin"] = (curves["step"] - 1) // width
    figure, axes = style.canvas(flags.width_mm, 75, 1, len(placements))
    for axis, placement in zip(axes[0], placements, strict=True):
        panel = curves[curves["placement"] == placement]
        for arm in style.in_order(panel["arm"]):
            looks = style.look(arm, list(runs["arm"]))
            of_arm = panel[panel["arm"] == arm]
            smooth = of_arm.groupby("bin")[["step", "train_loss"]].mean()
            line = looks | {"marker": ""}
            axis.plot(smooth["step"], smooth["train_loss"], **line)
            points = of_arm.dropna(subset="val_loss")
            dots = looks | {"linestyle": ""}
            axis.plot(points["step"], points["val_loss"], markerfacecolor="none", **dots)
            axis.plot([], [], label=ARMS[arm].label, markerfacecolor="none", **looks)
        axis.set_title(f"placement {placement}" if placement != "none" else "no placement")
        axis.set_xlabel("step")
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        ticks = [t for t in TICKS if low <= t <= high]
        axis.set_yticks(ticks, [f"{t:g}" for t in ticks])
        axis.minorticks_off()
    axes[0, 0].set_ylabel("loss (nats per character)")
    style.legend(figure)
    style.save(figure, flags.out)
    n = f"n: {count(runs)}. {divergences(runs)}"
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
