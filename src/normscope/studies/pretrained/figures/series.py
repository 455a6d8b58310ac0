"""Figure series: gain of the last block, sigma and logits over the training of each model."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from normscope.paper import style
from normscope.paper.drawing import Look
from normscope.studies.pretrained.figures import count_prompts, list_models, model_looks

SHOWN = {  # columns, with the title of their panel and the label of its axis
    "gain": ("last block", "gain"),
    "sigma": ("stream before the final norm", "standard deviation"),
    "logit_sd": ("logits", "standard deviation"),
}


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One line per model in each panel; a checkpoint that was not measured leaves a gap."""
    series = tables["series"]
    known = series.dropna(subset="log_gain")
    looks, size = model_looks(list(series["model"])), style.sample_size(known["n"])
    figure, axes = style.canvas(look.width_mm, 75, 1, len(SHOWN), shared=False)
    for axis, (column, (title, label)) in zip(axes.flat, SHOWN.items(), strict=True):
        for model, line in series[series["model"].isin(known["model"])].groupby(
            "model", sort=False
        ):
            values, name = line[column].astype(float), str(model)
            axis.plot(line["step"], values, label=name, **looks[name], ms=3)
        if known.empty:
            style.say(axis, "no series was measured")
        else:
            axis.set_xscale("symlog", linthresh=1)  # logarithmic from step 1 on; step 0 has room
            style.log_y(axis)
        axis.set(xlabel="training steps", ylabel=label)
        axis.set_title(f"{title}\n{size} prompts")
    style.baseline(axes[0, 0], 1)
    style.legend_below(figure, style.labelled([axes[0, 0]]), ncols=4)
    models = series.groupby("model", sort=False)[["norm"]].first().reset_index()
    return figure, (
        f"n: one model per line; {len(known)} of {len(series)} checkpoints were measured, with "
        f"{count_prompts(known)} each. {list_models(models)}"
    )
