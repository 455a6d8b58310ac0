"""Figure series: the gain of the last block over the training of each model of a series."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normscope.paper import style
from normscope.paper.drawing import Look
from normscope.studies.pretrained.figures import count_prompts, list_models, model_looks


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One line per model; a checkpoint that was not measured leaves a gap."""
    series = tables["series"]
    known = series.dropna(subset="log_gain")
    looks = model_looks(list(series["model"]))
    figure, axes = style.canvas(look.width_mm, 75, 1, 1)
    axis = axes[0, 0]
    for model, line in series[series["model"].isin(known["model"])].groupby("model", sort=False):
        gains = np.exp(line["log_gain"].astype(float))
        style.points(
            axis, line["step"], gains, str(model), label=str(model), **looks[str(model)], ms=3
        )
    if known.empty:
        style.say(axis, "no series was measured")
    else:
        axis.set_xscale("symlog", linthresh=1)  # logarithmic from step 1 on, with room for step 0
        style.log_y(axis)
    style.baseline(axis, 1)
    axis.set(xlabel="training steps", ylabel="gain of the last block")
    axis.set_title(f"last token, {style.sample_size(known['n'])} prompts of each checkpoint")
    style.legend_below(figure, style.labelled([axis]), ncols=4)
    models = series.groupby("model", sort=False)[["norm"]].first().reset_index()
    return figure, (
        f"n: one model per line; {len(known)} of {len(series)} checkpoints were measured, with "
        f"{count_prompts(known)} each. {list_models(models)}"
    )
