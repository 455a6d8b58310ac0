"""Rule figure_sensitivity: how the answer changes with the metric, the position and BOS."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.paper import style
from normscope.paper.caption import FigureFlags, caption
from normscope.paper.words import significant
from normscope.studies.pretrained.figure import n_of, nothing, prompts
from normscope.studies.pretrained.measures import METRICS, POSITIONS

CELLS = [(bos, positions) for bos in ("off", "on") for positions in POSITIONS]
LABELS = [f"{'BOS' if bos == 'on' else 'no BOS'},\n{positions}" for bos, positions in CELLS]
READS = {"above 1": "+", "below 1": "−", "covers 1": "0"}
ALONE = 3  # models with a panel each
RANGE = 1.5  # log-gains beyond it have the same colour
MM_PER_PANEL, REST_MM = 45, 10


class Flags(FigureFlags):
    """Draw a matrix a model."""

    sensitivity: Path
    models: Path


def over_models(table: pd.DataFrame) -> pd.DataFrame:
    """The median over models of each cell, and how many lie above and below 1."""
    rows = []
    for (bos, positions, metric), of in table.groupby(["bos", "positions", "metric"], sort=False):
        above, below = ((of["reads"] == side).sum() for side in ("above 1", "below 1"))
        row = {
            "bos": bos,
            "positions": positions,
            "metric": metric,
            "reads": f"({above}+ {below}−)",
        }
        rows.append(row | {"log_gain": of["log_gain"].median()})
    return pd.DataFrame(rows).assign(model=f"{table['model'].nunique()} models")


def draw(axis: Axes, table: pd.DataFrame):
    """Geometric means as text and colour, with the side of 1 on which the interval lies."""
    found = {(r["metric"], r["bos"], r["positions"]): r for r in table.to_dict("records")}
    values = np.full((len(METRICS), len(CELLS)), np.nan)
    for i, metric in enumerate(METRICS):
        for j, cell in enumerate(CELLS):
            row = found.get((metric, *cell))
            if row is None or np.isnan(row["log_gain"]):
                axis.text(j, i, "–", ha="center", va="center")
                continue
            values[i, j] = row["log_gain"]
            reads = READS.get(row["reads"], row["reads"])
            text = f"{significant(np.exp(row['log_gain']))} {reads}"
            is_dark = abs(row["log_gain"]) > 0.75 * RANGE
            axis.text(j, i, text, ha="center", va="center", color="white" if is_dark else "black")
    image = axis.imshow(values, cmap="RdBu_r", vmin=-RANGE, vmax=RANGE, aspect="auto")
    axis.set_xticks(range(len(CELLS)), LABELS)
    axis.set_yticks(range(len(METRICS)), list(METRICS.values()))
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    return image


def main() -> None:
    flags = CliApp.run(Flags)
    style.use(flags.font_pt)
    table = pd.read_csv(flags.sensitivity)
    n_prompts, models = prompts(table), list(table["model"].unique())
    if len(models) > ALONE:
        table, models = over_models(table), [f"{len(models)} models"]
    rows = max(1, len(models))
    figure, axes = style.canvas(
        flags.width_mm, MM_PER_PANEL * rows + REST_MM, rows, 1, shared=False
    )
    if not models:
        nothing(axes[0, 0])
    for axis, model in zip(axes[:, 0], models, strict=False):
        image = draw(axis, table[table["model"] == model])
        axis.set_title(model, loc="left")
        figure.colorbar(image, ax=axis, label="log-gain", shrink=0.8, extend="both")
    style.save(figure, flags.out)
    n = f"n: {n_prompts} of each model. {n_of(pd.read_csv(flags.models))}"
    write_text(flags.out.with_suffix(".txt"), caption(flags.caption, n))


if __name__ == "__main__":
    report(main)
