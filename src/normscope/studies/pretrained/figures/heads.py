"""Figure heads: the penultimate block's gain against the ratio of heads to head dimension."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select
from normscope.studies.pretrained.measures import CROWDED

STUDIES = ("sweep", "h25", "measured")
TICKS = (0.05, 0.1, 0.2, 0.5, 1)
RATIOS = {  # of the notebook's models: what a ratio of norms is called
    "gain_with_final_norm": "with the final norm",
    "gain_hidden_states": "as the notebook replaces it",
    "last_gain": "true last block",
}
PREDICTED: dict = {"color": "0.93", "linewidth": 0, "zorder": -1}


def draw_predictions(axis: Axes) -> None:
    """Shade where the hypothesis expects models: above 1 at the left, below 1 at the right."""
    (left, right), (low, high) = axis.get_xlim(), axis.get_ylim()
    axis.fill_between([left, CROWDED], 1, high, **PREDICTED)
    axis.fill_between([CROWDED, right], low, 1, **PREDICTED)
    axis.set(xlim=(left, right), ylim=(low, high))
    style.baseline(axis, 1)


def draw_ratios(axis: Axes, references: pd.DataFrame) -> None:
    """The notebook's two models: its two ratios, and the gain of the last block."""
    models = list(dict.fromkeys(select(references, experiment="final_norm")["model"].dropna()))
    for i, (metric, label) in enumerate(RATIOS.items()):
        rows = select(references, metric=metric).drop_duplicates("model")
        values = rows.set_index("model")["value"].reindex(models)
        axis.plot(range(len(models)), values, style.MARKERS[i], color=style.COLORS[i], label=label)
    style.baseline(axis, 1)
    axis.set_xlim(-0.5, max(1, len(models)) - 0.5)
    axis.set_xticks(range(len(models)), models)
    axis.set(ylabel="ratio of norms", title="the notebook's models")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One marker per model and study, filled where its interval excludes 1."""
    models = tables["h25_models"]
    is_shown = models["experiment"].isin(STUDIES) & (models["metric"] == "gain_hidden_states")
    models = models[is_shown]
    figure, axes = style.canvas(look.width_mm, 85, 1, 2, shared=False, width_ratios=(1, 1.6))
    draw_ratios(axes[0, 0], tables["references"])
    axis = axes[0, 1]
    for i, (family, rows) in enumerate(models.groupby("family", sort=False)):
        dots: dict = {"color": style.COLORS[i % len(style.COLORS)], "linestyle": ""}
        dots |= {"marker": style.MARKERS[(i + i // len(style.COLORS)) % len(style.MARKERS)]}
        for row in rows.to_dict("records"):
            fill: dict = {"mfc": "none"} if row["reading"] == "neither" else {}
            ends = row["low"], row["high"]
            style.estimates(axis, row["rho"], row["gain"], ends, width=0.6, **dots | fill)
        axis.plot([], [], label=family, **dots)
    axis.set_xscale("log")
    axis.set_xticks(TICKS, [f"{rho:g}" for rho in TICKS])
    axis.minorticks_off()
    draw_predictions(axis)
    axis.set(xlabel="rho: heads / head dimension", ylabel="gain of the penultimate block")
    axis.set_title(f"{len(models)} models, {style.sample_size(models['n'])} prompts")
    for of, ncols, place in ((axes[0, 0], 1, "left"), (axis, 4, "right")):
        style.legend_below(figure, style.legend_handles([of]), ncols, place)
    return figure, f"{style.sample_size(models['n'])} prompts of each model."
