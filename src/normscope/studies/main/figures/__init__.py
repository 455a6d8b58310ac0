"""Drawings of the figures in ``figures.yaml``; the looks and names of placements."""

from collections.abc import Mapping, Sequence

import pandas as pd

from normscope.nn.arms import ARMS
from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style
from normscope.statistics.summary import select

_ORDER = ("none", *(placement for placement in PLACEMENTS if placement != "none"))
LOOKS: dict[str, dict] = {
    placement: {
        "color": style.COLORS[i % len(style.COLORS)],
        # another marker where the colors begin again
        "marker": style.MARKERS[(i + i // len(style.COLORS)) % len(style.MARKERS)],
        "linestyle": style.LINES[i % len(style.LINES)],
    }
    for i, placement in enumerate(_ORDER)
}
DOTS: dict = {"linestyle": "", "mfc": "none", "markersize": 3}  # single models


def label(arm: str, placement: str) -> str:
    """An arm with the name of its placement: ``RMSNorm, pre-norm``."""
    return ARMS[arm].label if placement == "none" else f"{ARMS[arm].label}, {PLACEMENTS[placement]}"


def above_baseline(
    models: pd.DataFrame, baseline: Mapping[str, str], keys: Sequence[str], losses: Sequence[str]
) -> pd.DataFrame:
    """The models with their losses less those of the baseline's row with the same keys."""
    reference = select(models, **baseline).set_index(list(keys))[list(losses)]
    lower = reference.reindex(pd.MultiIndex.from_frame(models[list(keys)]))
    return models.assign(**{name: models[name] - lower[name].to_numpy() for name in losses})
