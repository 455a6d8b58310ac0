"""Rule figure_final_norm: three ratios called the last block's gain, and what rho says."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.studies.pretrained.figure import looks, n_of, nothing, one_line
from normscope.studies.pretrained.measures import METRICS
from normscope.studies.pretrained.published import CROWDED

RATIOS = ("gain_with_final_norm", "gain_hidden_states", "last_gain")
NAMED = 5  # models that a panel names
ABOVE: dict = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
STUDIES = ("sweep", "h25", "measured")  # of rho


class Flags(FigureFlags):
    """Draw the ratios, rho against gain, and gains by depth."""

    references: Path
    sensitivity: Path
    h25_models: Path
    layers: Path
    models: Path


def published_ratios(references: pd.DataFrame) -> pd.DataFrame:
    """Of the models that the notebook compares: its two ratios, and the last block's gain."""
    compared = references[references["experiment"] == "final_norm"]["model"].dropna()
    of_hooks = references[references["experiment"].isin(["benchmark", "gptj"])]
    table = pd.concat([references[references["experiment"] == "final_norm"], of_hooks])
    table = table[table["model"].isin(compared) & table["metric"].isin(RATIOS)]
    table = table.assign(model=table["model"] + " (published)")
    return table.pivot_table(index="model", columns="metric", values="value", sort=False)


def measured_ratios(sensitivity: pd.DataFrame) -> pd.DataFrame:
    """Of measured models: geometric means, BOS as the tokenizer has it."""
    table = sensitivity[sensitivity["usual"] & (sensitivity["positions"] == "last")]
    table = table.assign(value=np.exp(table["log_gain"]))
    return table.pivot_table(index="model", columns="metric", values="value", sort=False)


def draw_ratios(axis: Axes, table: pd.DataFrame) -> None:
    """Bars, a group a model."""
    x = np.arange(len(table))
    for i, ratio in enumerate(RATIOS):
        if ratio in table:
            values, at = table[ratio], x + 0.27 * (i - 1)
            axis.bar(at, values, width=0.25, color=style.COLORS[i + 1], label=METRICS[ratio])
    axis.set_xticks(x, list(table.index), rotation=30, ha="right", rotation_mode="anchor")
    axis.set_ylabel("ratio of norms")
    axis.legend(**ABOVE)
    one_line(axis, vertical=False)


def draw_rho(axis: Axes, table: pd.DataFrame) -> None:
    """The penultimate block's gain against rho; filled where its interval leaves out 1."""
    styles = looks(list(table["family"]))
    for row in table.to_dict("records"):
        look = styles[row["family"]]
        fill = "none" if row["reading"] == "neither" else look["color"]
        axis.plot(row["rho"], row["gain"], mfc=fill, linestyle="", markersize=3.5, **look)
        axis.vlines(row["rho"], row["low"], row["high"], color=look["color"], linewidth=0.6)
    for family, look in styles.items():
        axis.plot([], [], linestyle="", label=family, **look)
    one_line(axis, vertical=False)
    axis.axvline(CROWDED, color="0.6", linewidth=0.6, linestyle=":")
    axis.set_xscale("log")
    axis.set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
    axis.minorticks_off()
    axis.set(xlabel="rho = heads / head dimension", ylabel="gain of the penultimate block")
    axis.legend(ncols=2, fontsize="x-small", **ABOVE)


def draw_depth(axis: Axes, layers: pd.DataFrame) -> None:
    """Gain of every site by relative depth; the final norm is a cross."""
    styles = looks(list(layers["model"]))
    for model, of in layers.groupby("model", sort=False):
        look, depth = styles[str(model)], of["depth"] / of["depth"].max()
        is_norm = of["site"] == "final_norm"
        gains = np.exp(of["log_gain"])
        axis.plot(depth[~is_norm], gains[~is_norm], color=look["color"], label=str(model))
        axis.plot(depth[is_norm], gains[is_norm], "x", color=look["color"])
    if layers.empty:
        nothing(axis)
    else:
        style.log_y(axis)
    if 0 < len(styles) <= NAMED:
        axis.legend(**ABOVE)
    one_line(axis, vertical=False)
    axis.set(xlabel="depth", ylabel="gain of the site")


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    published = published_ratios(pd.read_csv(flags.references))
    ratios = pd.concat([published, measured_ratios(pd.read_csv(flags.sensitivity))[:NAMED]])
    rhos, layers = pd.read_csv(flags.h25_models), pd.read_csv(flags.layers)
    rhos = rhos[rhos["experiment"].isin(STUDIES) & (rhos["metric"] == "gain_hidden_states")]
    figure, axes = style.canvas(flags.width_mm, 90, 1, 3, shared=False)
    draw_ratios(axes[0, 0], ratios)
    draw_rho(axes[0, 1], rhos)
    draw_depth(axes[0, 2], layers[layers["usual"] & (layers["positions"] == "last")])
    style.save(figure, flags.out)
    n = (
        "n: 3 prompts for the first two ratios of published models and 25 for the third; "
        "rho: 25 prompts a model of the Pythia sweep, 5 of the others. "
        f"{n_of(pd.read_csv(flags.models))}"
    )
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
