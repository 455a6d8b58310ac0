"""Figure residual: the published panel of the last block's gain, with measured models."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.paper import style
from normscope.paper.drawing import Look, run
from normscope.studies.pretrained.figures import (
    count_prompts,
    list_models,
    mark_one,
    model_labels,
    model_looks,
    norm_color,
)
from normscope.studies.pretrained.studies import FIRST_STUDIES

SHOWN = ("gpt2", "measured")  # prompt by prompt; the others by their means
FIRST = 4  # measured models that are shown prompt by prompt
BINS = 15
TITLES = ("A. distribution", "B. entropy and gain", "C. by category", "D. means")
GAIN = "gain of the last block"


def select(observations: pd.DataFrame) -> pd.DataFrame:
    """The models that are shown prompt by prompt, with the column ``name``."""
    is_measured = observations["experiment"] == "measured"
    measured = list(observations.loc[is_measured, "model"].unique())
    is_left_out = is_measured & observations["model"].isin(measured[FIRST:])
    shown = observations[observations["experiment"].isin(SHOWN) & ~is_left_out]
    return shown.assign(name=model_labels(shown))


def draw_prompts(distribution: Axes, scatter: Axes, category: Axes, shown: pd.DataFrame) -> None:
    """Every prompt's gain: as a histogram, beside its entropy, by its category."""
    kinds = list(dict.fromkeys(shown["category"]))
    looks = model_looks(list(shown["name"]))
    edges = np.geomspace(shown["gain"].min(), shown["gain"].max(), BINS + 1)
    for i, (name, rows) in enumerate(shown.groupby("name", sort=False)):
        look = looks[str(name)]
        distribution.hist(rows["gain"], bins=list(edges), histtype="step", color=look["color"])
        dots: dict = {"linestyle": "", "mfc": "none", "markersize": 3, **look}
        scatter.plot(rows["entropy"], rows["gain"], label=str(name), **dots)
        aside = 0.7 * ((i + 0.5) / len(looks) - 0.5)
        category.plot([kinds.index(c) + aside for c in rows["category"]], rows["gain"], **dots)
    category.set_xticks(range(len(kinds)), kinds, rotation=30, ha="right")


def draw_means(axis: Axes, table: pd.DataFrame) -> None:
    """Bars as published: mean and standard deviation over prompts; a dash: the geometric mean."""
    table = table.sort_values("mean")
    x = np.arange(len(table))
    colors = [norm_color(norm) for norm in table["norm"]]
    axis.bar(x, table["mean"], color=colors, alpha=0.35, yerr=table["sd"], ecolor="0.6", width=0.7)
    geometric, low, high = (np.exp(table[k]) for k in ("log_gain", "low", "high"))
    axis.hlines(geometric, x - 0.35, x + 0.35, color=colors, linewidth=1.4)
    axis.vlines(x, low, high, color=colors, linewidth=1.4)
    axis.set_xticks(x, model_labels(table), rotation=60, ha="right", rotation_mode="anchor")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Gains prompt by prompt, and their means."""
    by_model = tables["by_model"]
    figure, axes = style.canvas(look.width_mm, 170, 2, 2, shared=False)
    distribution, scatter, category, means = axes.flat
    draw_prompts(distribution, scatter, category, select(tables["observations"]))
    draw_means(means, by_model[by_model["experiment"].isin((*FIRST_STUDIES, "measured"))])
    mark_one(distribution, vertical=True)
    for axis in (scatter, category, means):
        mark_one(axis)
        axis.set_ylabel(GAIN)
    distribution.set(xlabel=GAIN, ylabel="prompts")
    scatter.set_xlabel("entropy of the next token (nats)")
    for axis, title in zip(axes.flat, TITLES, strict=True):
        axis.set_title(title, loc="left")
    style.legend_below(figure, style.labelled([scatter]), ncols=2)
    n = f"n: {count_prompts(by_model)} of each model. {list_models(tables['models'])}"
    return figure, n


if __name__ == "__main__":
    run(draw)
