"""Rule figure_decisive: the decisive test's three panels, corrected."""

import pandas as pd
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import caption
from normscope.studies.recall.figure import PanelFlags, mark_divergence, n_of, name_axes, of_cells

SMALLEST = 1e-4  # centering leaves d - 1 values that are not rounding


class Flags(PanelFlags):
    """Draw the corrected figure."""


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    tables = (flags.runs, flags.curves, flags.slices, flags.spectra)
    runs, curves, slices, spectra = (of_cells(pd.read_csv(path), flags.cells) for path in tables)
    slices = slices[slices["kind"] == "filter"]
    spectra = spectra[spectra["where"] == "query"]
    figure, axes = style.canvas(flags.width_mm, 70, 1, 3, shared=False)
    losses, cuts, values = axes[0]
    arms = list(runs["arm"])
    for arm in style.in_order(arms):
        looks = style.look(arm, arms) | {"marker": ""}
        color = looks["color"]
        for _, curve in curves[curves["arm"] == arm].groupby("seed"):
            losses.plot(curve["step"], curve["train_loss"], linewidth=0.5, **looks)
        over = slices[slices["arm"] == arm].groupby("alpha")["loss"]
        if over.ngroups:
            cuts.plot(over.mean(), **looks)
            band = {"color": color, "alpha": 0.15, "lw": 0}
            cuts.fill_between(over.mean().index, over.min(), over.max(), **band)
        for _, s in spectra[spectra["arm"] == arm].groupby("seed"):
            values.plot(s["index"], s["value"] / s["value"].max(), linewidth=0.5, **looks)
        values.plot([], [], label=ARMS[arm].label, **looks)
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
            axis.text(0.5, 0.5, "diverged", ha="center", transform=axis.transAxes)
    style.legend(figure)
    style.save(figure, flags.out)
    directions = slices["direction"].nunique()
    n = f"{directions} directions, the same for every arm and seed. {n_of(runs)}"
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
