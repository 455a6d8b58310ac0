"""Figure final_norm: three ratios called the last block's gain, and what rho says."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.studies.pretrained.figures import NOTHING, count_prompts, list_models
from normscope.studies.pretrained.measures import CROWDED, METRICS

# greys: colours are models and families
RATIOS = {"gain_with_final_norm": "0.8", "gain_hidden_states": "0.5", "last_gain": "0.1"}
NAMED = 5  # models that a panel names
STUDIES = ("sweep", "h25", "measured")  # of rho
RHOS = (0.05, 0.2, 1)  # ticks; a model may lie anywhere


def published_ratios(references: pd.DataFrame) -> pd.DataFrame:
    """Ratios of norms of the models in the notebook on the final norm: one row per model.

    Its two ratios, and the gain of the last block, which two other notebooks measure with hooks.
    """
    notebook = references[references["experiment"] == "final_norm"]
    hooked = references[references["experiment"].isin(["benchmark", "gptj"])]
    table = pd.concat([notebook, hooked[hooked["metric"] == "last_gain"]])
    table = table[table["model"].isin(notebook["model"].dropna())]
    return table.pivot_table("value", index="model", columns="metric", sort=False)


def measured_ratios(sensitivity: pd.DataFrame) -> pd.DataFrame:
    """The same ratios of measured models: geometric means, BOS as the tokenizer has it."""
    table = sensitivity[sensitivity["usual"] & (sensitivity["positions"] == "last")]
    table = table.assign(value=np.exp(table["log_gain"]))
    return table.pivot_table("value", index="model", columns="metric", sort=False)


def model_looks(models: Iterable[str]) -> dict[str, dict]:
    """Color and marker of each model, or family, of a panel."""
    return {
        model: {
            "color": style.COLORS[i % len(style.COLORS)],
            "marker": style.MARKERS[(i + i // len(style.COLORS)) % len(style.MARKERS)],
        }
        for i, model in enumerate(dict.fromkeys(models))
    }


def draw_ratios(axis: Axes, table: pd.DataFrame) -> None:
    """Bars, one group per model; the table has a row per model and a column per ratio."""
    y = np.arange(len(table))
    for i, (ratio, color) in enumerate(RATIOS.items()):
        if ratio in table:
            place = y + style.dodge(i, len(RATIOS), 0.8)
            look: dict = {"height": 0.25, "color": color, "label": METRICS[ratio]}
            axis.barh(place, table[ratio], **look)
    style.name_rows(axis, list(table.index))
    axis.set_xlabel("ratio of norms")
    style.baseline(axis, 1, vertical=True)


def draw_rho(axis: Axes, table: pd.DataFrame) -> None:
    """The penultimate block's gain against rho; filled where its interval excludes 1."""
    looks = model_looks(list(table["family"]))
    for row in table.to_dict("records"):
        look = looks[row["family"]]
        fill = "none" if row["reading"] == "neither" else look["color"]
        dots: dict = look | {"mfc": fill, "linestyle": "", "markersize": 3.5}
        ends = row["low"], row["high"]
        style.estimates(axis, row["rho"], row["gain"], ends, width=0.6, **dots)
    for family, look in looks.items():
        axis.plot([], [], linestyle="", label=family, **look)
    style.baseline(axis, 1)
    axis.axvline(CROWDED, color="0.6", linewidth=0.6, linestyle=":")
    axis.set_xscale("log")
    axis.set_xticks(RHOS, [f"{rho:g}" for rho in RHOS])
    axis.minorticks_off()
    axis.set(xlabel="rho = heads / head dimension", ylabel="gain of the penultimate block")
    axis.set_title(f"H25: gain and rho,\n{style.sample_size(table['n'])} prompts")


def draw_depth(axis: Axes, layers: pd.DataFrame) -> None:
    """Gain of every site by relative depth; the final norm is a cross."""
    looks = model_looks(list(layers["model"]))
    for model, sites in layers.groupby("model", sort=False):
        look, depth = looks[str(model)], sites["depth"] / sites["depth"].max()
        is_norm = sites["site"] == "final_norm"
        gains = np.exp(sites["log_gain"])
        axis.plot(depth[~is_norm], gains[~is_norm], color=look["color"], label=str(model))
        cross: dict = {"marker": "x", "linestyle": "", "color": look["color"]}
        axis.plot(depth[is_norm], gains[is_norm], **cross)
    if layers.empty:
        style.say(axis, NOTHING)
    else:
        style.log_y(axis)
    axis.set_title(f"all sites,\n{style.sample_size(layers['n'])} prompts")
    style.baseline(axis, 1)
    axis.set(xlabel="depth (share of all sites)", ylabel="gain of the site")


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """The ratios, rho against gain, and gains by depth."""
    rhos, layers = tables["h25_models"], tables["layers"]
    published = published_ratios(tables["references"])
    measured = measured_ratios(tables["sensitivity"])[:NAMED]
    shown = pd.concat([published.rename(index="{} (published)".format), measured])
    figure, axes = style.canvas(look.width_mm, 82, 1, 3, shared=False)
    draw_ratios(axes[0, 0], shown)
    rows = pd.concat([tables["references"], tables["sensitivity"]])
    rows = rows[rows["model"].isin([*published.index, *measured.index])]
    axes[0, 0].set_title(f"three ratios,\n{style.sample_size(rows['n'])} prompts")
    is_shown = rhos["experiment"].isin(STUDIES) & (rhos["metric"] == "gain_hidden_states")
    rhos = rhos[is_shown]
    draw_rho(axes[0, 1], rhos)
    draw_depth(axes[0, 2], layers[layers["usual"] & (layers["positions"] == "last")])
    for place, axis in zip(("left", "center", "right"), axes[0], strict=True):
        names = style.labelled([axis])
        if place == "center" or len(names) <= NAMED:
            style.legend_below(figure, names, 1 + (place == "center"), place)
    return figure, f"n: {count_prompts(rhos)} of each model. {list_models(tables['models'])}"
