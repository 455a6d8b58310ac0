"""Rule figure_residual: the published panel of the last block's gain, with measured models."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.studies.pretrained.figure import color, looks, n_of, names, one_line, prompts
from normscope.studies.pretrained.studies import FIRST_STUDIES

SHOWN = ("gpt2", "measured")  # prompt by prompt; the others by their means
FIRST = 4  # measured models that are shown prompt by prompt
BINS = 15


class Flags(FigureFlags):
    """Draw gains prompt by prompt, and their means."""

    observations: Path
    by_model: Path
    models: Path


def draw_means(axis: Axes, table: pd.DataFrame) -> None:
    """Bars as published: mean and standard deviation over prompts; a dash: the geometric mean."""
    table = table.sort_values("mean")
    x = np.arange(len(table))
    colors = [color(norm) for norm in table["norm"]]
    axis.bar(x, table["mean"], color=colors, alpha=0.35, yerr=table["sd"], ecolor="0.6", width=0.7)
    geometric, low, high = (np.exp(table[k]) for k in ("log_gain", "low", "high"))
    axis.hlines(geometric, x - 0.35, x + 0.35, color=colors, linewidth=1.4)
    axis.vlines(x, low, high, color=colors, linewidth=1.4)
    axis.set_xticks(x, names(table), rotation=60, ha="right", rotation_mode="anchor")
    axis.set_ylabel("gain of the last block")


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    observations, by_model = pd.read_csv(flags.observations), pd.read_csv(flags.by_model)
    here = list(observations.loc[observations["experiment"] == "measured", "model"].unique())
    shown = observations[observations["experiment"].isin(SHOWN)]
    shown = shown[~shown["model"].isin(here[FIRST:]) | (shown["experiment"] != "measured")]
    shown = shown.assign(name=names(shown))
    figure, axes = style.canvas(flags.width_mm, 170, 2, 2, shared=False)
    distribution, scatter, category, means = axes.flat
    kinds = list(dict.fromkeys(shown["category"]))
    styles = looks(list(shown["name"]))
    edges = np.geomspace(shown["gain"].min(), shown["gain"].max(), BINS + 1)
    for i, (name, of) in enumerate(shown.groupby("name", sort=False)):
        look = styles[str(name)]
        distribution.hist(of["gain"], bins=list(edges), histtype="step", color=look["color"])
        dots: dict = {"linestyle": "", "mfc": "none", "markersize": 3, **look}
        scatter.plot(of["entropy"], of["gain"], label=str(name), **dots)
        at = [kinds.index(c) + 0.7 * ((i + 0.5) / len(styles) - 0.5) for c in of["category"]]
        category.plot(at, of["gain"], **dots)
    draw_means(means, by_model[by_model["experiment"].isin((*FIRST_STUDIES, "measured"))])
    one_line(distribution, vertical=True)
    for axis in (scatter, category, means):
        one_line(axis, vertical=False)
        axis.set_ylabel("gain of the last block")
    distribution.set(xlabel="gain of the last block", ylabel="prompts")
    scatter.set_xlabel("entropy of the next token (nats)")
    category.set_xticks(range(len(kinds)), kinds, rotation=30, ha="right")
    titles = ("A. distribution", "B. entropy and gain", "C. by category", "D. means")
    for axis, title in zip(axes.flat, titles, strict=True):
        axis.set_title(title, loc="left")
    handles, labels = scatter.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    style.save(figure, flags.out)
    n = f"n: {prompts(by_model)} of each model. {n_of(pd.read_csv(flags.models))}"
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
