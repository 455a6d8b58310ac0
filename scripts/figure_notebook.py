"""Rule figure_notebook: the decisive test's three panels as the notebook draws them."""

from pathlib import Path

import pandas as pd
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.nn.arms import ARMS
from normscope.paper import style
from normscope.paper.caption import caption
from normscope.paper.words import records
from normscope.studies.recall.figure import PanelFlags, mark_divergence, n_of, name_axes, of_cells


class Flags(PanelFlags):
    """Draw the notebook's figure."""

    seed: int


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)

    def read(path: Path) -> pd.DataFrame:
        table = of_cells(pd.read_csv(path), flags.cells)
        return table[table["seed"] == flags.seed]

    runs, curves = read(flags.runs), read(flags.curves)
    slices, spectra = read(flags.slices), read(flags.spectra)
    slices = slices[slices["kind"] == "published"]
    spectra = spectra[spectra["where"] == "published"]
    figure, axes = style.canvas(flags.width_mm, 70, 1, 3, shared=False)
    losses, cuts, values = axes[0]
    looks = {arm: style.look(arm, list(runs["arm"])) for arm in runs["arm"]}
    for r in records(runs):
        line = looks[r.arm] | {"marker": ""}
        curve, cut, s = (t[t["arm"] == r.arm] for t in (curves, slices, spectra))
        losses.plot(curve["step"], curve["train_loss"], linewidth=0.6, **line)
        cuts.plot(cut["alpha"], cut["loss"], markersize=2, **looks[r.arm])
        values.plot(s["index"], s["value"], label=ARMS[r.arm].label, **line)
    mark_divergence(losses, runs)
    name_axes(
        axes[0],
        ("training loss", "step", "loss (nats)"),
        ("loss slice, offsets accumulating", "alpha as labelled", "loss (nats)"),
        ("singular values, uncentered", "index", "singular value"),
    )
    losses.set_yscale("log")
    values.set_yscale("log")
    style.legend(figure)
    style.save(figure, flags.out)
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n_of(runs)))


if __name__ == "__main__":
    report(main)
