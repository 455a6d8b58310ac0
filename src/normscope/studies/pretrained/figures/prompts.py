"""Figure prompts: gains of the last block of GPT-2 models, prompt by prompt."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import select

WIDTH = 0.5  # over which the models of a category are dodged


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """The gains of all prompts: their distribution, by entropy, and by category."""
    table = select(tables["observations"], experiment="gpt2")
    categories = sorted(set(table["category"]))
    models = list(dict.fromkeys(table["model"]))
    figure, (axes,) = style.canvas(look.width_mm, 80, 1, 3, sharey="row", shared=False)
    for i, model in enumerate(models):
        rows = select(table, model=model)
        dots: dict = {"marker": style.MARKERS[i], "color": style.COLORS[i], "markersize": 3}
        dots |= {"linestyle": "", "mfc": "none"}
        bars = {"histtype": "step", "color": dots["color"], "orientation": "horizontal"}
        axes[0].hist(rows["gain"], bins=15, **bars)
        axes[1].plot(rows["entropy"], rows["gain"], label=model, **dots)
        shift = style.dodge(i, len(models), WIDTH)
        axes[2].plot(rows["category"].map(categories.index) + shift, rows["gain"], **dots)
    for axis, label in zip(axes, ("prompts", "entropy (nats)", "category"), strict=True):
        style.baseline(axis, 1)
        axis.set(xlabel=label, title=f"gain by {label.removesuffix(' (nats)')}")
    n = style.sample_size(table.groupby("model").size())
    axes[0].set(ylabel="gain of the last block", title=f"distribution, {n}")
    axes[2].set_xticks(range(len(categories)), categories, rotation=30)
    style.legend_below(figure, style.legend_handles(axes), ncols=len(models) or 1)
    return figure, f"{n} prompts of each model."
