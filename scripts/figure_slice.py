"""Rule figure_slice: the published loss slice and the corrected ones on the same axes."""

from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp, CliPositionalArg

from normscope.errors import report
from normscope.io.files import write_text
from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.studies.recall.figure import n_of, of_cells

KINDS = {
    "published": "published: offsets accumulate",
    "restored": "same direction, restored",
    "filter": "filter-normalized, restored",
}
PUBLISHED, RESTORED, FILTER = style.COLORS[2], style.COLORS[0], style.COLORS[1]


class Flags(FigureFlags):
    """Draw loss slices, published and corrected."""

    cells: CliPositionalArg[list[str]] = Field(description="the notebook's runs")
    seed: int
    runs: Path
    slices: Path


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    slices = of_cells(pd.read_csv(flags.slices), flags.cells)
    runs = of_cells(pd.read_csv(flags.runs), flags.cells)
    slices, runs = (t[t["seed"] == flags.seed] for t in (slices, runs))
    arms = style.in_order(list(runs["arm"]))
    figure, axes = style.canvas(flags.width_mm, 105, 2, len(arms), shared=False)
    for column, arm in enumerate(arms):
        of_arm = slices[slices["arm"] == arm]
        published, restored, filtered = (of_arm[of_arm["kind"] == kind] for kind in KINDS)
        top, bottom = axes[:, column]
        top.set_title(ARMS[arm].label)
        if of_arm.empty:
            top.text(0.5, 0.5, "diverged", ha="center", transform=top.transAxes)
            continue
        near = restored[restored["offset"].abs() <= published["alpha"].abs().max()]
        near = near.sort_values("offset")
        over = filtered.groupby("alpha")["loss"]
        for axis in (top, bottom):
            dots = {"marker": "o", "markersize": 2, "linestyle": "", "color": PUBLISHED}
            axis.plot(published["alpha"], published["loss"], label=KINDS["published"], **dots)
            axis.plot(near["offset"], near["loss"], color=RESTORED, label=KINDS["restored"])
        top.plot(over.mean(), color=FILTER, linestyle="--", label=KINDS["filter"])
        top.fill_between(over.mean().index, over.min(), over.max(), color=FILTER, alpha=0.15, lw=0)
        style.log_y(top)
        bottom.set_xlabel("offset")
        bottom.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
    axes[0, 0].set_ylabel("loss (nats)")
    axes[1, 0].set_ylabel("loss (nats), close up")
    handles = dict(zip(*reversed(axes[0, 0].get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    style.save(figure, flags.out)
    n = f"{slices[slices['kind'] == 'filter']['direction'].nunique()} such directions. {n_of(runs)}"
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
