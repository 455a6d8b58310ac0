"""Figure curves: training and validation loss against the step, a panel per placement."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import count, divergences
from normscope.paper.drawing import Look, run
from normscope.statistics.summary import select
from normscope.studies.main.figures import placement_title

TICKS = (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 7, 10, 15, 20)
BINS = 40  # points of a smoothed training curve


def draw_panel(axis: Axes, curves: pd.DataFrame, arms: list[str]) -> None:
    """A line an arm for training, open markers for validation."""
    for arm in style.in_order(list(curves["arm"])):
        look = style.arm_look(arm, arms)
        line: dict = look | {"marker": ""}
        dots: dict = look | {"linestyle": ""}
        curve = curves[curves["arm"] == arm]
        smooth = curve.groupby("bin")[["step", "train_loss"]].mean()
        axis.plot(smooth["step"], smooth["train_loss"], **line)
        points = curve.dropna(subset="val_loss")
        axis.plot(points["step"], points["val_loss"], markerfacecolor="none", **dots)
        axis.plot([], [], label=ARMS[arm].label, markerfacecolor="none", **look)
    axis.set_xlabel("step")
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    ticks = [t for t in TICKS if low <= t <= high]
    axis.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axis.minorticks_off()


def draw(tables: Mapping[str, pd.DataFrame], look: Look, protocol: str) -> tuple[Figure, str]:
    """Loss curves of a protocol, each arm at its best rate."""
    runs, curves = (select(tables[name], protocol=protocol) for name in ("chosen", "curves"))
    placements = list(dict.fromkeys(runs["placement"]))
    width = max(1, curves["step"].max() // BINS)
    curves = curves.assign(bin=(curves["step"] - 1) // width)
    figure, axes = style.canvas(look.width_mm, 75, 1, len(placements))
    for axis, placement in zip(axes[0], placements, strict=True):
        axis.set_title(placement_title(placement))
        draw_panel(axis, curves[curves["placement"] == placement], list(runs["arm"]))
    axes[0, 0].set_ylabel("loss (nats per character)")
    style.arm_legend(figure)
    return figure, f"n: {count(runs)}. {divergences(runs)}"


if __name__ == "__main__":
    run(draw)
