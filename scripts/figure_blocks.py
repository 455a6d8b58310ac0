"""Rule figure_blocks: the gain of every block of every measured model, by position and BOS."""

from pathlib import Path

import numpy as np
import pandas as pd
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.studies.pretrained.figure import looks, n_of, nothing, one_line, prompts
from normscope.studies.pretrained.measures import POSITIONS

BOS = {"off": "no BOS", "on": "BOS"}


class Flags(FigureFlags):
    """Draw gains by depth."""

    layers: Path
    models: Path


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    layers = pd.read_csv(flags.layers)
    layers = layers[layers["site"].str.startswith("block_") & (layers["depth"] > 1)]
    styles = looks(list(layers["model"]))
    figure, axes = style.canvas(flags.width_mm, 130, len(POSITIONS), len(BOS))
    for row, positions in zip(axes, POSITIONS, strict=True):
        row[0].set_ylabel(f"gain, {positions} position{'s' if positions == 'later' else ''}")
        for axis, (bos, title) in zip(row, BOS.items(), strict=True):
            of = layers[(layers["positions"] == positions) & (layers["bos"] == bos)]
            for model, line in of.groupby("model", sort=False):
                look, depth = styles[str(model)], line["depth"] - 1
                gain, low, high = (np.exp(line[k]) for k in ("log_gain", "low", "high"))
                line_style = style.LINES[list(styles).index(str(model)) // len(style.COLORS) % 5]
                axis.plot(depth, gain, color=look["color"], ls=line_style, label=str(model))
                axis.fill_between(depth, low, high, color=look["color"], alpha=0.25, linewidth=0)
            if of.empty:
                nothing(axis)
            else:
                style.log_y(axis)
            one_line(axis, vertical=False)
            if positions == POSITIONS[0]:
                axis.set_title(title)
            if positions == POSITIONS[-1]:
                axis.set_xlabel("block")
    handles, labels = axes[-1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    style.save(figure, flags.out)
    n = (
        f"n: {prompts(layers)} of each model; bands: {flags.level:.0%} t interval over prompts. "
        f"{n_of(pd.read_csv(flags.models))}"
    )
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
