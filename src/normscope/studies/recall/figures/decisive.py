"""Figure decisive: the recall test's three panels, as published and corrected."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import geometric_mean, select
from normscope.statistics.tuning import choose
from normscope.studies.arms import arm_legend, arm_look, in_order, line_look
from normscope.studies.recall.figures import (
    describe_arm,
    describe_sample,
    draw_slices,
    select_cells,
)
from normscope.studies.recall.tabulate import KEYS

BINS = 100  # of a curve, in which losses are averaged, so that dashes can be seen
SMALLEST = 1e-4  # centering leaves d - 1 values that are not rounding
KINDS = {"as published": ("published", "published"), "corrected": ("filter", "query")}
PANELS = (  # title, label of x, label of y
    ("training loss", "step", "loss (nats)"),
    ("loss slice", "offset, as labeled", "loss (nats)"),
    ("singular values", "index", "share of the largest"),
)


def draw_row(axes: np.ndarray, tables: Mapping[str, pd.DataFrame], kind: str) -> None:
    """The panels of some models: a thin line per seed, and slices over directions and seeds."""
    of_slices, where = KINDS[kind]
    losses, cuts, values = axes
    runs, slices = tables["runs"], select(tables["slices"], kind=of_slices)
    spectra = select(tables["spectra"], where=where)
    for arm in in_order(list(runs["arm"])):
        look = line_look(arm)
        thin = look | {"linewidth": 0.5}
        for _, curve in select(tables["curves"], arm=arm).groupby("seed"):
            bins = curve.groupby((curve["step"] - 1) * BINS // curve["step"].max())
            losses.plot(bins["step"].mean(), bins["train_loss"].agg(geometric_mean), **thin)
        draw_slices(cuts, select(slices, arm=arm), geometric=True, **look)
        for _, spectrum in select(spectra, arm=arm).groupby("seed"):
            share = spectrum["value"] / spectrum["value"].max()
            values.plot(spectrum["index"], share, **thin)
        values.plot([], [], label=ARMS[arm].label, **look)
    mark_divergence(losses, runs)
    n = style.sample_size(runs.groupby("arm")["seed"].nunique())
    for axis, (title, x, y) in zip(axes, PANELS, strict=True):
        axis.set(title=f"{title},\n{kind}, {n}", xlabel=x, ylabel=y)
        style.log_y(axis)
    if len(spectra):
        values.set_ylim(bottom=SMALLEST)
    else:
        for axis in (cuts, values):
            style.say(axis, "diverged")


def mark_divergence(axis: Axes, runs: pd.DataFrame) -> None:
    """A cross at the top of a panel for every run that diverged, at its last step."""
    for row in runs[runs["diverged_at"].notna()].to_dict("records"):
        color, at_top = arm_look(row["arm"])["color"], axis.get_xaxis_transform()
        cross: dict = {"marker": "x", "color": color, "transform": at_top, "clip_on": False}
        axis.plot(row["diverged_at"], 0.97, **cross)


def draw(
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    published: Sequence[Sequence],
    seed: int,
    corrected: Sequence[Sequence],
) -> tuple[Figure, str]:
    """The notebook's panels of one seed, and below corrected ones of arms at their chosen rates.

    Both are given as cells: task, arm, learning rate.
    """
    first = select(select_cells(tables["runs"], published), seed=seed)
    wanted = pd.DataFrame(corrected, columns=KEYS)[["task", "arm"]].drop_duplicates()
    tried = wanted.merge(tables["runs"])
    picked = choose(tried, ["task", "arm"], by="loss")
    figure, axes = style.canvas(look.width_mm, 130, 2, 3, shared=False)
    for kind, row, models in zip(KINDS, axes, (first, picked), strict=True):
        keys = models[[*KEYS, "seed"]]
        draw_row(row, {name: keys.merge(table) for name, table in tables.items()}, kind)
    cells_of = picked.groupby("arm", sort=False)
    arm_legend(figure, {str(arm): describe_arm(cell) for arm, cell in cells_of})
    directions = select(tables["slices"], kind="filter")["direction"].nunique()
    same = f"{directions} directions, the same for every norm and seed."
    shown = pd.concat([first, picked]).drop_duplicates([*KEYS, "seed"])
    return figure, f"{same} {describe_sample(shown)}"
