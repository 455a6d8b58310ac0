"""Drawings of the figures in ``figures.yaml``; the looks and names of placements."""

from normscope.nn.arms import ARMS
from normscope.nn.recipe import PLACEMENTS
from normscope.pages import style

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
