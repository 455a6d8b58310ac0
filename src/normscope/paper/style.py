"""The look of every figure: print sizes, colours for colour-blind readers, fixed bytes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from normscope.nn.arms import ARMS

# Okabe & Ito 2008, "Color Universal Design", without its yellow, too pale for lines on paper
COLORS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (8, 2)))
MM_PER_INCH = 25.4


def use(font_pt: float) -> None:
    """Set fonts and lines for print, and what makes two writings of a figure the same bytes."""
    mpl.use("agg")
    mpl.rcParams.update(
        {
            "font.size": font_pt,
            "axes.titlesize": font_pt,
            "axes.labelsize": font_pt,
            "legend.fontsize": font_pt - 1,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.linewidth": 0.6,
            "lines.linewidth": 1.0,
            "lines.markersize": 4,
            "legend.frameon": False,
            "pdf.fonttype": 42,
            "svg.hashsalt": "normscope",
            "figure.constrained_layout.use": True,
        }
    )


def canvas(
    width_mm: float, height_mm: float, rows: int, columns: int, *, shared: bool = True
) -> tuple[Figure, np.ndarray]:
    """A figure of that size with panels ``[row, column]``; rows share y, columns x, if shared."""
    size = (width_mm / MM_PER_INCH, height_mm / MM_PER_INCH)
    sharing: dict = {"sharex": "col", "sharey": "row"} if shared else {}
    return plt.subplots(rows, columns, figsize=size, squeeze=False, **sharing)


def log_y(axis: Axes) -> None:
    """A logarithmic y axis whose ticks can be read: plain numbers where it spans little."""
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    if low <= 0:  # nothing is drawn
        axis.set_yscale("linear")
        return
    if math.floor(math.log10(high)) > math.ceil(math.log10(low)):  # two powers of ten or more
        axis.yaxis.set_minor_formatter(NullFormatter())
        return
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = [m * 10.0**k for k in range(first, last + 1) for m in (1, 1.5, 2, 3, 5, 7)]
    ticks = [t for t in every if low <= t <= high]
    if len(ticks) < 2:
        ticks = list(np.linspace(low, high, 4)[1:3])
    digits = next(d for d in range(3, 18) if len({f"{t:.{d}g}" for t in ticks}) == len(ticks))
    axis.set_yticks(ticks, [f"{t:.{digits}g}" for t in ticks])
    axis.minorticks_off()


def arm_look(arm: str, arms: Sequence[str]) -> dict:
    """Colour, marker and line of an arm among those in a figure, in the order of the registry."""
    i = in_order(arms).index(arm)
    return {
        "color": COLORS[i % len(COLORS)],
        "marker": MARKERS[(i + i // len(COLORS)) % len(MARKERS)],
        "linestyle": LINES[(i % len(COLORS) + i // len(COLORS)) % len(LINES)],
    }


def in_order(arms: Sequence[str]) -> list[str]:
    """Distinct arms in the order of the registry."""
    return sorted(set(arms), key=list(ARMS).index)


def labelled(axes: Iterable[Axes]) -> dict[str, Artist]:
    """What has a label in some panels, each label once."""
    handles: dict[str, Artist] = {}
    for axis in axes:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    return handles


def samples(axis: Axes, looks: Mapping[str, dict]) -> dict[str, Artist]:
    """Lines without data that show looks in a legend, by their labels."""
    return {label: axis.plot([], [], **look)[0] for label, look in looks.items()}


def legend_below(figure: Figure, handles: Mapping[str, Artist], ncols: int) -> None:
    """One legend below the panels, hiding no data."""
    labels = list(handles)
    figure.legend(list(handles.values()), labels, loc="outside lower center", ncols=ncols)


def arm_legend(figure: Figure) -> None:
    """One legend of all arms below the panels, in the order of the registry."""
    handles = labelled(figure.axes)
    arms = {arm.label: handles[arm.label] for arm in ARMS.values() if arm.label in handles}
    legend_below(figure, arms, min(len(arms), 6))


def say(axis: Axes, words: str) -> None:
    """Words in the middle of a panel that has nothing else."""
    axis.text(0.5, 0.5, words, ha="center", transform=axis.transAxes)


def save(figure: Figure, stem: Path) -> None:
    """Write ``stem``.pdf and ``stem``.svg without a date."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.with_suffix(".pdf"), metadata={"CreationDate": None})
    figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)
