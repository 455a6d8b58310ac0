"""Figure decisive: the recall test's three panels, corrected."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.tuning import chosen
from normscope.studies.arms import arm_legend, in_order, line_look
from normscope.studies.recall.figures import (
    describe_arm,
    describe_sample,
    draw_slices,
    mark_divergence,
    name_axes,
)
from normscope.studies.recall.tabulate import KEYS

SMALLEST = 1e-4  # centering leaves d - 1 values that are not rounding


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, cells: Sequence[Sequence]
) -> tuple[Figure, str]:
    """The corrected figure of the tasks and arms of some cells, each at its chosen rate."""
    wanted = pd.DataFrame(cells, columns=KEYS)[["task", "arm"]].drop_duplicates()
    tried = wanted.merge(tables["runs"])
    picked = chosen(tried, ["task", "arm"], by="loss")
    models = picked[[*KEYS, "seed"]]
    tables = {name: models.merge(table) for name, table in tables.items()}
    runs, curves, slices, spectra = (tables[k] for k in ("runs", "curves", "slices", "spectra"))
    slices = slices[slices["kind"] == "filter"]
    spectra = spectra[spectra["where"] == "query"]
    figure, axes = style.canvas(look.width_mm, 70, 1, 3, shared=False)
    losses, cuts, values = axes[0]
    for arm in in_order(list(runs["arm"])):
        line = line_look(arm)
        thin = line | {"linewidth": 0.5}
        for _, curve in curves[curves["arm"] == arm].groupby("seed"):
            losses.plot(curve["step"], curve["train_loss"], **thin)
        draw_slices(cuts, slices[slices["arm"] == arm], geometric=True, **line)
        for _, spectrum in spectra[spectra["arm"] == arm].groupby("seed"):
            share = spectrum["value"] / spectrum["value"].max()
            values.plot(spectrum["index"], share, **thin)
        values.plot([], [], label=ARMS[arm].label, **line)
    mark_divergence(losses, runs)
    name_axes(
        axes[0],
        ("training loss", "step", "loss (nats)"),
        ("loss slice, filter-normalized", "offset", "loss (nats)"),
        ("singular values, centered", "index", "share of the largest"),
    )
    for axis in axes[0]:
        style.log_y(axis)
    if len(spectra):
        values.set_ylim(bottom=SMALLEST)
    else:
        for axis in (cuts, values):
            style.say(axis, "diverged")
    rates = tried.groupby("arm")["learning_rate"].nunique()
    cells_of = picked.groupby("arm", sort=False)
    arm_legend(figure, {str(arm): describe_arm(cell, rates[arm]) for arm, cell in cells_of})
    directions = slices["direction"].nunique()
    same = f"{directions} directions, the same for every arm and seed."
    return figure, f"{same} {describe_sample(runs)}"
