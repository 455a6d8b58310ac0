"""Rule figure_spectra: singular values of the blocks' Jacobians, and angles, block by block."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.studies.depth.figure import COLORS, band, by_block, drawn, n_of, placement_handles
from normscope.studies.depth.measures import ANGLES, PLACEMENTS, SINGULAR

RESIDUAL = {True: "with residuals", False: "without"}
STATES = {"start": "at the start", "trained": "trained"}
ENDS = {"largest": {"marker": "^"}, "smallest": {"marker": "v"}}
LINES = dict(zip(ANGLES, style.LINES, strict=False))
SHIFT = 0.03  # of a placement's markers, in units of the depth, so that they can be told apart
ZERO = 3e-3  # the foot of the panel, where what is below is drawn


class Flags(FigureFlags):
    """Draw the extreme singular values and the angles by block."""

    by_block: Path


def panels(table: pd.DataFrame) -> list[tuple[str, bool, int]]:
    """State, residual and depth of every column: the deepest models of each kind."""
    deepest = table.groupby(["state", "residual"])["depth"].max().to_dict()
    kinds = [(state, residual) for residual in RESIDUAL for state in STATES]
    return [(*kind, deepest[kind]) for kind in kinds if kind in deepest]


def draw_spectra(axis: Axes, panel: pd.DataFrame) -> None:
    """Largest and smallest singular value; what is below the panel is drawn at its foot."""
    axis.axhline(1, color="0.6", linewidth=0.6)
    for (placement, end), line in panel.groupby(["placement", "measure"], sort=False):
        look: dict = {"color": COLORS[str(placement)], "linestyle": "", **ENDS[str(end)]}
        if end == "smallest":
            look["mfc"] = "white"
        aside = SHIFT * panel["block"].max() * (list(PLACEMENTS).index(str(placement)) - 1.5)
        mean, low, high = (line[k].clip(lower=ZERO) for k in ("mean", "low", "high"))
        axis.plot(line["block"] + aside, mean, **look)
        axis.vlines(line["block"] + aside, low, high, color=look["color"], linewidth=0.8)
    axis.set_yscale("log")
    axis.set_ylim(bottom=ZERO / 1.6)


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    table = drawn(pd.read_csv(flags.by_block))
    columns = panels(table)
    figure, axes = style.canvas(flags.width_mm, 120, 2, max(1, len(columns)), shared=False)
    axes[0, 0].set_ylabel("singular values of a block")
    axes[1, 0].set_ylabel("angle to the stream, degrees")
    shown = []
    for (state, residual, depth), top, bottom in zip(columns, *axes, strict=False):
        of = table[
            (table["state"] == state) & (table["residual"] == residual) & (table["depth"] == depth)
        ]
        shown.append(of)
        draw_spectra(top, of[of["measure"].isin(SINGULAR)])
        for placement in PLACEMENTS:
            for angle in ANGLES:
                line = of[(of["placement"] == placement) & (of["measure"] == angle)]
                if len(line):
                    band(bottom, line, color=COLORS[placement], linestyle=LINES[angle])
        bottom.axhline(90, color="0.6", linewidth=0.6)
        bottom.set_ylim(0, 180)
        bottom.set_yticks([0, 45, 90, 135, 180])
        top.set_xlim(bottom.get_xlim())
        by_block(top)
        top.set_title(f"{depth} blocks,\n{RESIDUAL[residual]}, {STATES[state]}")
        by_block(bottom)
    handles, labels = placement_handles(table["placement"])
    looks = {
        "largest": {"marker": "^", "linestyle": ""},
        "smallest": {"marker": "v", "linestyle": "", "mfc": "white"},
        "attention": {"linestyle": LINES["angle_attention"]},
        "MLP": {"linestyle": LINES["angle_mlp"]},
    }
    grey = [Line2D([], [], color="0.4", **look) for look in looks.values()]
    figure.legend([*handles, *grey], [*labels, *looks], loc="outside lower center", ncols=4)
    style.save(figure, flags.out)
    known = pd.concat(shown) if shown else table
    said = f"{n_of(known)}; bars and bands: {flags.level:.0%} t intervals over them."
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, said))


if __name__ == "__main__":
    report(main)
