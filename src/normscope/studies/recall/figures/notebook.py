"""Figure notebook: the recall test's three panels as the notebook draws them."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from normscope.nn.arms import ARMS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import geometric_mean
from normscope.studies.arms import arm_legend, arm_look, line_look, sample_sizes
from normscope.studies.recall.figures import (
    describe_sample,
    mark_divergence,
    name_axes,
    select_cells,
)

BIN = 40  # steps averaged, so that dashes can be seen


def draw(
    tables: Mapping[str, pd.DataFrame], look: Look, cells: Sequence[Sequence], seed: int
) -> tuple[Figure, str]:
    """The notebook's figure, of one seed of some cells: task, arm, learning rate."""
    tables = {name: select_cells(table, cells) for name, table in tables.items()}
    tables = {name: table[table["seed"] == seed] for name, table in tables.items()}
    runs, curves, slices, spectra = (tables[k] for k in ("runs", "curves", "slices", "spectra"))
    slices = slices[slices["kind"] == "published"]
    spectra = spectra[spectra["where"] == "published"]
    figure, axes = style.canvas(look.width_mm, 70, 1, 3, shared=False)
    losses, cuts, values = axes[0]
    for arm in runs["arm"]:
        line, label = line_look(arm), ARMS[arm].label
        curve, cut, spectrum = (t[t["arm"] == arm] for t in (curves, slices, spectra))
        bins = curve.groupby((curve["step"] - 1) // BIN)
        losses.plot(bins["step"].mean(), bins["train_loss"].agg(geometric_mean), **line)
        cuts.plot(cut["alpha"], cut["loss"], markersize=2, **arm_look(arm))
        values.plot(spectrum["index"], spectrum["value"], label=label, **line)
    mark_divergence(losses, runs)
    name_axes(
        axes[0],
        ("training loss", "step", "loss (nats)"),
        ("loss slice, offsets accumulating", "alpha as labelled", "loss (nats)"),
        ("singular values, uncentered", "index", "singular value"),
    )
    for axis in axes[0]:
        style.log_y(axis)
    arm_legend(figure, sample_sizes(runs, ("arm", "learning_rate")))
    return figure, describe_sample(runs)
