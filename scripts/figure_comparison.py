"""Rule figure_comparison: gains of the last block, sorted, published and measured."""

from pathlib import Path

import numpy as np
import pandas as pd
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.studies.pretrained.figure import NORMS, color, n_of, names, one_line, prompts

MM_PER_ROW, REST_MM = 5.5, 30


class Flags(FigureFlags):
    """Draw every model's gain as published and corrected, in order."""

    by_model: Path
    models: Path


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    table = pd.read_csv(flags.by_model).sort_values("log_gain", ignore_index=True)
    height = MM_PER_ROW * len(table) + REST_MM
    figure, axes = style.canvas(flags.width_mm, height, 1, 1, shared=False)
    axis = axes[0, 0]
    one_line(axis, vertical=True)
    for y, row in enumerate(table.to_dict("records")):
        look, gain = color(row["norm"]), np.exp(row["log_gain"])
        fill = look if row["experiment"] == "measured" else "none"
        axis.hlines(y, np.exp(row["low"]), np.exp(row["high"]), color=look, linewidth=1.4)
        axis.plot(gain, y, marker="o", color=look, mfc=fill)
        axis.plot(row["mean"], y, marker="|", markersize=7, color="0.3")
        axis.annotate(
            f"{gain:.3f}", (np.exp(row["high"]), y), (4, -2.5), textcoords="offset points"
        )
    axis.set_xscale("log")
    ticks = [
        t
        for t in (0.5, 0.7, 0.8, 1, 1.2, 1.5, 2, 2.5, 3, 5)
        if axis.get_xlim()[0] <= t <= axis.get_xlim()[1]
    ]
    axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axis.minorticks_off()
    axis.set_yticks(range(len(table)), names(table))
    axis.set_xlabel("gain of the last block")
    marks: dict[str, dict] = {
        n: {"color": c, "marker": "", "linestyle": "-"} for n, c in NORMS.items()
    }
    marks |= {
        "published": {"color": "0.4", "marker": "o", "mfc": "none", "linestyle": ""},
        "measured": {"color": "0.4", "marker": "o", "linestyle": ""},
        "arithmetic mean": {"color": "0.3", "marker": "|", "linestyle": ""},
    }
    handles = [axis.plot([], [], **look)[0] for look in marks.values()]
    figure.legend(handles, list(marks), loc="outside lower center", ncols=5)
    style.save(figure, flags.out)
    n = f"n: {prompts(table)} of each model. {n_of(pd.read_csv(flags.models))}"
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
