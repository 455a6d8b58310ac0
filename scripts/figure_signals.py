"""Rule figure_signals: size of the stream and of the gradient, block by block, at the start."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.studies.depth.figure import COLORS, band, by_block, drawn, n_of, placement_handles
from normscope.studies.depth.measures import PLACEMENTS, RELATIVE

MEASURES = {"activation_rms": "RMS of the stream", RELATIVE: "gradient, relative to the last"}
RESIDUAL = {True: "with residuals", False: "without"}
STARTS = {"gpt2": "-", "gpt2_flat": "--"}
DEEPEST = 2  # depths that are drawn
LOWEST = 1e-12  # what is below leaves the panel


class Flags(FigureFlags):
    """Draw the stream and the gradient by block."""

    by_block: Path


def published(axis: Axes, depth: int, residual: bool) -> None:
    """The tutorial's curve, by the formulas that draw it, from the last block (1) to the first."""
    block = np.arange(1, depth + 1)
    passed = depth - block
    curve = 0.7 + 0.3 * 0.9**passed if residual else 0.8**passed
    axis.plot(block, curve, color="0.55", linestyle=":", linewidth=1.5)


def draw(axis: Axes, panel: pd.DataFrame) -> None:
    """A line per placement; says what lies below the panel."""
    below = []
    for placement in PLACEMENTS:
        for init, look in STARTS.items():
            line = panel[(panel["placement"] == placement) & (panel["init"] == init)]
            if len(line):
                band(axis, line, color=COLORS[placement], linestyle=look)
            if init == "gpt2" and (line["mean"] < LOWEST).any():
                below.append(f"{PLACEMENTS[placement]}: down to {line['mean'].min():.0e}")
    if below:
        axis.text(0.5, 0.03, "\n".join(below), transform=axis.transAxes, ha="center", fontsize=6)
    axis.set_yscale("log")
    known = panel[["mean", "low", "high"]].to_numpy().ravel()
    known = known[np.isfinite(known) & (known > 0)]  # one model has no interval
    if len(known):
        axis.set_ylim(max(known.min(), LOWEST) / 2, known.max() * 2)


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    table = drawn(pd.read_csv(flags.by_block), *STARTS)
    table = table[(table["state"] == "start") & table["measure"].isin(list(MEASURES))]
    depths = sorted(set(table.loc[table["init"] == "gpt2", "depth"]))[-DEEPEST:]
    table = table[table["depth"].isin(depths)]
    columns = [(depth, residual) for residual in RESIDUAL for depth in depths]
    figure, axes = style.canvas(
        flags.width_mm, 110, len(MEASURES), max(1, len(columns)), shared=False
    )
    for (measure, title), row in zip(MEASURES.items(), axes, strict=True):
        row[0].set_ylabel(title)
        for (depth, residual), axis in zip(columns, row, strict=False):
            of = table[(table["depth"] == depth) & (table["residual"] == residual)]
            draw(axis, of[of["measure"] == measure])
            if measure == RELATIVE:
                published(axis, depth, residual)
                by_block(axis)
            else:
                axis.set_title(f"{depth} blocks,\n{RESIDUAL[residual]}")
    handles, labels = placement_handles(table["placement"])
    looks = {"as published: drawn": {"color": "0.55", "linestyle": ":", "linewidth": 1.5}}
    if "gpt2_flat" in set(table["init"]):
        looks["unscaled start"] = {"color": "0.4", "linestyle": "--"}
    more = [Line2D([], [], **look) for look in looks.values()]
    figure.legend([*handles, *more], [*labels, *looks], loc="outside lower center", ncols=6)
    style.save(figure, flags.out)
    said = f"{n_of(table)}; bands: {flags.level:.0%} t intervals of the logarithm over them."
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, said))


if __name__ == "__main__":
    report(main)
