"""Figure curves: training and validation loss against the step, and above the baseline's."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.arms import (
    add_sample,
    arm_label,
    arm_legend,
    count,
    divergences,
    draw_models,
    in_order,
    line_look,
    placement_title,
    sample_sizes,
)
from normscope.studies.main.figures import above_baseline

BINS = 40  # points of a smoothed training curve
LOSSES = ["train_loss", "val_loss"]
LINEAR = 0.1  # nats up to which differences have a linear axis


def draw_panel(axis: Axes, curves: pd.DataFrame) -> None:
    """One line per arm for training, open markers for validation."""
    for arm in in_order(list(curves["arm"])):
        curve = curves[curves["arm"] == arm]
        smooth = curve.groupby("bin")[["step", "train_loss"]].mean()
        axis.plot(smooth["step"], smooth["train_loss"], **line_look(arm))
        points = curve.dropna(subset="val_loss")
        draw_models(axis, arm, points["step"], points["val_loss"])
        add_sample(axis, arm)


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, protocol: str, baseline: Mapping[str, str]
) -> tuple[Figure, str]:
    """Loss curves of a protocol, each arm at its best rate."""
    runs, curves = (select(tables[name], protocol=protocol) for name in ("chosen", "curves"))
    placements = list(dict.fromkeys(runs["placement"]))
    width = max(1, curves["step"].max() // BINS)
    curves = curves.assign(bin=(curves["step"] - 1) // width)
    above = above_baseline(curves, baseline, ["seed", "step"], LOSSES)
    figure, axes = style.canvas(look.width_mm, 115, 2, len(placements))
    for placement, top, bottom in zip(placements, *axes, strict=True):
        for axis, losses in ((top, curves), (bottom, above)):
            draw_panel(axis, select(losses, placement=placement))
            axis.set_title(placement_title(placement))
        style.baseline(bottom, 0)
        bottom.set_xlabel("step")
    for axis in axes[1]:
        style.symlog(axis, LINEAR, vertical=True)
    axes[0, 0].set_ylabel("loss (nats per character)")
    axes[1, 0].set_ylabel(f"above {arm_label(**baseline)} (nats)")
    arm_legend(figure, sample_sizes(runs))
    return figure, f"n: {count(runs)}. {divergences(runs)}"
