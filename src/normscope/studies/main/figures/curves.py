"""Figure curves: training and validation loss against the step, and above the baseline's."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import count, divergences
from normscope.paper.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.main.figures import arm_label, placement_title

BINS = 40  # points of a smoothed training curve
LOSSES = ["train_loss", "val_loss"]
LINEAR = 0.1  # nats up to which differences have a linear axis


def above_baseline(curves: pd.DataFrame, baseline: Mapping[str, str]) -> pd.DataFrame:
    """The curves less the baseline's of the same seed and step."""
    keys = ["seed", "step"]
    own = select(curves, **baseline).set_index(keys)[LOSSES]
    lower = own.reindex(pd.MultiIndex.from_frame(curves[keys]))
    return curves.assign(**{name: curves[name] - lower[name].to_numpy() for name in LOSSES})


def draw_panel(axis: Axes, curves: pd.DataFrame) -> None:
    """A line an arm for training, open markers for validation."""
    for arm in style.in_order(list(curves["arm"])):
        look = style.arm_look(arm)
        line: dict = look | {"marker": ""}
        dots: dict = look | {"linestyle": ""}
        curve = curves[curves["arm"] == arm]
        smooth = curve.groupby("bin")[["step", "train_loss"]].mean()
        axis.plot(smooth["step"], smooth["train_loss"], **line)
        points = curve.dropna(subset="val_loss")
        axis.plot(points["step"], points["val_loss"], markerfacecolor="none", **dots)
        axis.plot([], [], label=ARMS[arm].label, markerfacecolor="none", **look)


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, protocol: str, baseline: Mapping[str, str]
) -> tuple[Figure, str]:
    """Loss curves of a protocol, each arm at its best rate."""
    runs, curves = (select(tables[name], protocol=protocol) for name in ("chosen", "curves"))
    placements = list(dict.fromkeys(runs["placement"]))
    width = max(1, curves["step"].max() // BINS)
    curves = curves.assign(bin=(curves["step"] - 1) // width)
    above = above_baseline(curves, baseline)
    figure, axes = style.canvas(look.width_mm, 115, 2, len(placements))
    for placement, top, bottom in zip(placements, *axes, strict=True):
        for axis, losses in ((top, curves), (bottom, above)):
            draw_panel(axis, select(losses, placement=placement))
            axis.set_title(placement_title(placement))
        bottom.axhline(0, color="0.6", linewidth=0.6, zorder=0)
        bottom.set_xlabel("step")
    style.log_y(axes[0, 0])
    style.symlog(axes[1, 0], LINEAR, vertical=True)
    axes[0, 0].set_ylabel("loss (nats per character)")
    axes[1, 0].set_ylabel(f"above {arm_label(**baseline)}")
    style.arm_legend(figure)
    return figure, f"n: {count(runs)}. {divergences(runs)}"
