"""Figure residual: the published panels of the last block's gain, with measured models."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.studies.pretrained.figures import NORMS, OTHER, list_models, model_labels

SHOWN = ("gpt2", "measured")
FIRST = 4  # measured models that are shown
TITLES = ("A. distribution", "B. entropy and gain", "C. by category")
PANEL_MM = 60
GAIN = "gain of the last block"


def select(observations: pd.DataFrame) -> pd.DataFrame:
    """The models that are shown, with the column ``name``."""
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


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """Gains prompt by prompt."""
    shown = select(tables["observations"])
    figure, (top, bottom) = style.parts(look.width_mm, (PANEL_MM, PANEL_MM))
    distribution, scatter = top.subplots(1, 2)
    category = bottom.subplots()
    draw_prompts(distribution, scatter, category, shown)
    style.baseline(distribution, 1, vertical=True)
    distribution.set(xlabel=GAIN, ylabel="share of prompts up to there")
    for axis in (scatter, category):
        style.baseline(axis, 1)
        axis.set_ylabel(GAIN)
    scatter.set_xlabel("entropy of the next token (nats)")
    n = style.sample_size(shown.groupby("name").size())
    for axis, title in zip(figure.axes, TITLES, strict=True):
        axis.set_title(f"{title}, {n} prompts of each model", loc="left")
    norms = {norm: {"color": c, "linewidth": 4, "alpha": 0.5} for norm, c in NORMS.items()}
    looks = style.labelled([scatter]) | style.samples(scatter, norms)
    style.legend_below(figure, looks, ncols=3)
    return figure, list_models(tables["models"])
