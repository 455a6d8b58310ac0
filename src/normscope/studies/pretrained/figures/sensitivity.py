"""Figure sensitivity: how the answer changes with the metric, the position and BOS."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from normscope.formats import SIGNIFICANT
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.statistics.summary import split
from normscope.studies.pretrained.figures import NOTHING, count_prompts, list_models
from normscope.studies.pretrained.measures import BOS, METRICS, POSITIONS

CELLS = [(bos, positions) for bos in BOS for positions in POSITIONS]
LABELS = [f"{BOS[bos]},\n{positions}" for bos, positions in CELLS]
READS = {"above 1": " +", "below 1": " −", "covers 1": " 0"}
ALONE = 3  # models with a panel each
RANGE = 1.5  # log-gains beyond it have the same colour
# without the dark ends, on which black numbers cannot be read
PALE = ListedColormap(colormaps["RdBu_r"](np.linspace(0.2, 0.8, 256)))
MM_PER_PANEL, REST_MM = 45, 10


def over_models(table: pd.DataFrame) -> pd.DataFrame:
    """The median over models of each cell, and how many lie above and below 1."""
    cells = []
    for cell, models in split(table, ["bos", "positions", "metric"]):
        above, below = ((models["reads"] == side).sum() for side in ("above 1", "below 1"))
        reads = f"\n{above}+ {below}−"
        cells.append(cell | {"reads": reads, "log_gain": models["log_gain"].median()})
    return pd.DataFrame(cells).assign(model=f"{table['model'].nunique()} models")


def draw_matrix(axis: Axes, table: pd.DataFrame) -> AxesImage:
    """Geometric means as text and colour, with the side of 1 on which the interval lies."""
    rows = {(r["metric"], r["bos"], r["positions"]): r for r in table.to_dict("records")}
    values = np.full((len(METRICS), len(CELLS)), np.nan)
    for i, metric in enumerate(METRICS):
        for j, cell in enumerate(CELLS):
            row = rows.get((metric, *cell))
            if row is None or np.isnan(row["log_gain"]):
                axis.text(j, i, "–", ha="center", va="center")
                continue
            values[i, j] = row["log_gain"]
            reads = READS.get(row["reads"], row["reads"])
            text = f"{SIGNIFICANT.text(np.exp(row['log_gain']))}{reads}"
            axis.text(j, i, text, ha="center", va="center")
    image = axis.imshow(values, cmap=PALE, vmin=-RANGE, vmax=RANGE, aspect="auto")
    axis.set_xticks(range(len(CELLS)), LABELS)
    axis.set_yticks(range(len(METRICS)), list(METRICS.values()))
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    return image


def draw(tables: Mapping[str, pd.DataFrame], look: Look) -> tuple[Figure, str]:
    """One matrix per model, or one for all of many models."""
    table = tables["sensitivity"]
    n, models = count_prompts(table), list(table["model"].unique())
    if len(models) > ALONE:
        table, models = over_models(table), [f"{len(models)} models"]
    rows = max(1, len(models))
    height = MM_PER_PANEL * rows + REST_MM
    figure, axes = style.canvas(look.width_mm, height, rows, 1, shared=False)
    if not models:
        style.say(axes[0, 0], NOTHING)
    for axis, model in zip(axes[:, 0], models, strict=False):
        image = draw_matrix(axis, table[table["model"] == model])
        axis.set_title(
            f"{model}, {style.sample_size(tables['sensitivity']['n'])} prompts", loc="left"
        )
        figure.colorbar(image, ax=axis, label="log-gain", shrink=0.8, extend="both")
    return figure, f"n: {n} of each model. {list_models(tables['models'])}"
