"""Figure residual: the published panel of the last block's gain, with measured models."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.studies.pretrained.figures import (
    NORMS,
    OTHER,
    count_prompts,
    list_models,
    model_labels,
)
from normscope.studies.pretrained.measures import FIRST_STUDIES

SHOWN = ("gpt2", "measured")  # prompt by prompt; the others by their means
FIRST = 4  # measured models that are shown prompt by prompt
TITLES = ("A. distribution", "B. entropy and gain", "C. by category", "D. means")
MM_PER_ROW, PANEL_MM, REST_MM = 4, 55, 35
GAIN = "gain of the last block"


def select(observations: pd.DataFrame) -> pd.DataFrame:
    """The models that are shown prompt by prompt, with the column ``name``."""
    is_measured = observations["experiment"] == "measured"
    measured = list(observations.loc[is_measured, "model"].unique())
    is_left_out = is_measured & observations["model"].isin(measured[FIRST:])
    shown = observations[observations["experiment"].isin(SHOWN) & ~is_left_out]
    return shown.assign(name=model_labels(shown))


def model_looks(shown: pd.DataFrame) -> dict[str, dict]:
    """The color of each model's norm; every model has another marker and line."""
    models = shown.drop_duplicates("name")
    marks = zip(models["name"], models["norm"], style.MARKERS, style.LINES, strict=False)
    return {
        name: {"color": NORMS.get(norm, OTHER), "marker": marker, "linestyle": line}
        for name, norm, marker, line in marks
    }


def draw_prompts(distribution: Axes, scatter: Axes, category: Axes, shown: pd.DataFrame) -> None:
    """The gain of every prompt: its distribution, against the entropy, and by category."""
    kinds = list(dict.fromkeys(shown["category"]))
    looks = model_looks(shown)
    for i, (name, look) in enumerate(looks.items()):
        rows = shown[shown["name"] == name]
        line: dict = look | {"marker": ""}
        distribution.ecdf(rows["gain"], **line)
        dots: dict = look | {"linestyle": "", "mfc": "none", "markersize": 3}
        scatter.plot(rows["entropy"], rows["gain"], **dots)
        places = rows["category"].map(kinds.index) + style.dodge(i, len(looks), 0.7)
        category.plot(places, rows["gain"], **dots)
        scatter.plot([], [], label=name, mfc="none", **look)
    category.set_xticks(range(len(kinds)), kinds)


def draw_means(axis: Axes, table: pd.DataFrame) -> None:
    """Bars as published: mean and standard deviation over prompts; a dash: the geometric mean."""
    table = table.assign(tuned=table["base"].notna())
    table = table.sort_values(["tuned", "mean"], ascending=[True, False])
    y = np.arange(len(table))
    colors = [NORMS.get(norm, OTHER) for norm in table["norm"]]
    bars: dict = {"color": colors, "alpha": 0.35, "ecolor": "0.6", "height": 0.7}
    axis.barh(y, table["mean"], xerr=table["sd"], **bars)
    geometric, low, high = (np.exp(table[k]) for k in ("log_gain", "low", "high"))
    axis.vlines(geometric, y - 0.35, y + 0.35, color=colors, linewidth=1.4)
    axis.hlines(y, low, high, color=colors, linewidth=1.4)
    style.name_rows(axis, model_labels(table))


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Gains prompt by prompt, and their means."""
    by_model = tables["by_model"]
    base = by_model[by_model["experiment"].isin((*FIRST_STUDIES, "measured"))]
    heights = PANEL_MM, PANEL_MM, REST_MM + MM_PER_ROW * len(base)
    figure, (top, middle, bottom) = style.parts(look.width_mm, heights)
    distribution, scatter = top.subplots(1, 2)
    category, means = middle.subplots(), bottom.subplots()
    draw_prompts(distribution, scatter, category, select(tables["observations"]))
    draw_means(means, base)
    for axis in (distribution, means):
        style.baseline(axis, 1, vertical=True)
        axis.set_xlabel(GAIN)
    for axis in (scatter, category):
        style.baseline(axis, 1)
        axis.set_ylabel(GAIN)
    distribution.set_ylabel("share of prompts up to there")
    scatter.set_xlabel("entropy of the next token (nats)")
    n = f"{style.sample_size(base['n'])} prompts"
    for axis, title in zip(figure.axes, TITLES, strict=True):
        axis.set_title(f"{title}, {n} of each model", loc="left")
    looks = style.labelled([scatter]) | style.samples(
        scatter, {n: {"color": c, "linewidth": 4, "alpha": 0.5} for n, c in NORMS.items()}
    )
    style.legend_below(figure, looks, ncols=3)
    n = f"n: {count_prompts(by_model)} of each model. {list_models(tables['models'])}"
    return figure, n
