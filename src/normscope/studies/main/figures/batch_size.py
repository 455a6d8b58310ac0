"""Figure batch_size: what a smaller batch costs BatchNorm, and what it costs LayerNorm."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.studies.arms import (
    AS_CHANCE,
    add_sample,
    arm_legend,
    divergences,
    draw_models,
    in_order,
    line_look,
)

SHIFT = 0.25  # octaves over which norms are dodged
GROUP = ["text", "batch_size"]


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Loss above that at the greatest batch size, of the texts and sizes that all norms have."""
    batches = tables["batches"]
    norms = batches.groupby(GROUP)["arm"].transform("nunique")
    batches = batches[norms == norms.max()]
    arms = in_order(list(batches["arm"]))
    figure, axes = style.canvas(look.width_mm, 75, 1, 1)
    axis = axes[0, 0]
    if batches.empty:
        return figure, style.say(axis, "no norm has two batch sizes")
    for i, arm in enumerate(arms):
        models = batches[batches["arm"] == arm]
        models = models.assign(x=models["batch_size"] * style.dodge_log(i, len(arms), SHIFT))
        axis.plot(models.groupby("x")["excess"].mean(), **line_look(arm))
        draw_models(axis, arm, models["x"], models["excess"])
        add_sample(axis, arm)
    style.log_x(axis, batches["batch_size"], base=2)
    counts = batches.groupby(["batch_size", "arm"]).size().groupby("batch_size")
    labels = [f"{size}\n{style.sample_size(n)}" for size, n in counts]
    axis.set_xticks([int(str(size)) for size in counts.groups], labels)
    axis.set(xlabel="windows in a batch; models of each norm", ylabel="added loss (nats)")
    axis.set_title("loss above that at the largest batch")
    style.baseline(axis, 0)
    arm_legend(figure)
    return figure, divergences(batches, ("arm", "batch_size"), AS_CHANCE)
