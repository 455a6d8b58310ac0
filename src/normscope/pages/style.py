"""The look of every figure: print sizes, colours for colour-blind readers, fixed bytes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from normscope.pages.svg import compact

# Okabe & Ito 2008, "Color Universal Design", without its yellow, too pale for lines on paper
COLORS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "<", "p", "h", "P")
LINES = (
    "-",
    (0, (4, 1.5)),
    (0, (1.5, 2.5)),
    (0, (4, 1, 1, 1)),
    (0, (8, 2)),
    (0, (4, 1, 1, 1, 1, 1)),
    (0, (2, 2)),
    (0, (1, 1)),
    (0, (8, 2, 1, 2)),
)
DASH: dict = {"marker": "|", "markersize": 9, "markeredgewidth": 1.6}  # a mean over its interval
MEAN = "mean"  # label of such a mean
OPEN: dict = {"mfc": "white"}  # one model, which has no interval
LABEL = 0.075  # width of a number at an axis, as a share of the figure's
LABEL_CHARACTERS = 4  # of such a number; longer ones need more
MM_PER_INCH = 25.4
DPI = 72  # of SVG


def use(font_pt: float) -> None:
    """Set fonts and lines for print, and what makes the bytes of a figure reproducible."""
    mpl.use("agg")
    mpl.rcdefaults()  # in place of a user's matplotlibrc
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
            "svg.fonttype": "none",
            "figure.constrained_layout.use": True,
        }
    )


def canvas(
    width_mm: float, height_mm: float, rows: int, columns: int, *, shared: bool = True, **grid
) -> tuple[Figure, np.ndarray]:
    """A figure with panels ``[row, column]``; if ``shared``, rows share y and columns share x."""
    size = (width_mm / MM_PER_INCH, height_mm / MM_PER_INCH)
    sharing: dict = {"sharex": "col", "sharey": "row"} if shared else {}
    return plt.subplots(rows, columns, figsize=size, squeeze=False, **sharing, **grid)


def panel_column(
    width_mm: float, row_mm: float, rest_mm: float, counts: Sequence[int]
) -> tuple[Figure, np.ndarray]:
    """A figure of panels below each other with a common x axis; ``counts`` are their rows."""
    ratios = [n + rest_mm / row_mm / (len(counts) + 1) for n in counts]
    height = row_mm * sum(counts) + rest_mm * len(counts)
    figure, axes = canvas(width_mm, height, len(counts), 1, shared=False, height_ratios=ratios)
    for axis in axes[1:, 0]:
        axis.sharex(axes[0, 0])
    return figure, axes[:, 0]


def dodge(i: int, n: int, width: float) -> float:
    """The shift of the i-th of ``n`` overlapping points, which share ``width``."""
    return width * ((i + 0.5) / n - 0.5)


def dodge_log(i: int, n: int, octaves: float) -> float:
    """The shift as a factor on a logarithmic axis, with the width in octaves."""
    return 2 ** dodge(i, n, octaves)


def dash(axis: Axes, mean: float, y: float, ends: tuple[float, float], **look) -> None:
    """Plot a mean with its interval among the points of its models; one model has neither."""
    if np.isfinite(ends).all():
        estimates(axis, [mean], [y], ends, across=True, label=MEAN, **DASH | look)


def estimates(
    axis: Axes,
    x: ArrayLike,
    y: ArrayLike,
    ends: tuple[ArrayLike, ArrayLike],
    *,
    across: bool = False,
    width: float | None = 0.8,
    **look,
) -> None:
    """Plot points with their intervals.

    A point without an interval, that of one model, is open.

    Args:
        axis: the panel.
        x: of the points.
        y: of the points.
        ends: low and high ends of the intervals; NaN where there is none.
        across: whether the intervals are along x.
        width: line width of the intervals.
        look: of the points; its color is also that of the intervals.
    """
    x, y, low, high = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (x, y, *ends)))
    bars, place = (axis.hlines, y) if across else (axis.vlines, x)
    bars(place, low, high, color=look["color"], linewidth=width)
    is_known = np.isfinite(low) & np.isfinite(high)
    is_alone = np.isfinite(y) & ~is_known
    shown = [(is_known, look), (is_alone, look | OPEN)]
    if is_known.any() and is_alone.any():  # a line joins all points
        joint: dict = look | {"marker": "", "label": ""}
        axis.plot(x, y, **joint)
        bare = look | {"linestyle": ""}
        shown = [(is_known, bare), (is_alone, bare | OPEN | {"label": ""})]
    for which, looks in shown:
        if which.any():
            axis.plot(x[which], y[which], **looks)


def baseline(axis: Axes, value: float, *, vertical: bool = False) -> None:
    """A thin gray line at a value, behind the data."""
    line = axis.axvline if vertical else axis.axhline
    line(value, color="0.6", linewidth=0.6, zorder=0)


def log_x(axis: Axes, values: Iterable[float], base: int = 10) -> None:
    """A logarithmic x axis with a tick at every value, and its number where there is room."""
    axis.set_xscale("log", base=base)
    known = sorted(set(values))
    grid = axis.get_subplotspec()
    columns = grid.get_gridspec().ncols if grid else 1
    room = LABEL * columns * math.log(max(known[-1] / known[0], 2))
    names = [f"{value:g}" for value in known]
    labels, last, before = [], -math.inf, ""
    for value, name in zip(known, names, strict=True):
        characters = (len(before) + len(name)) / 2
        is_free = math.log(value) - last >= room * max(1, characters / LABEL_CHARACTERS)
        labels.append(name if is_free else "")
        last, before = (math.log(value), name) if is_free else (last, before)
    axis.set_xticks(known, labels)
    axis.minorticks_off()


def symlog(axis: Axes, linear: float, *, vertical: bool = False) -> None:
    """An axis for differences: linear up to ``linear``, logarithmic and shaded beyond."""
    line = axis.yaxis if vertical else axis.xaxis
    scale = axis.set_yscale if vertical else axis.set_xscale
    scale("symlog", linthresh=linear)
    low, high = line.get_view_interval()
    steps = [0, *(sign * m * linear for m in (0.5, 1, 3, 10, 30) for sign in (-1, 1))]
    ticks = sorted(tick for tick in steps if low <= tick <= high)
    line.set_ticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    line.set_ticks([], minor=True)
    line.grid(linewidth=0.3, color="0.85")
    axis.set_axisbelow(True)
    shade: dict = {"color": "0.95", "linewidth": 0, "zorder": -1}
    for start, end in ((low, -linear), (linear, high)):
        if start < end:
            (axis.axhspan if vertical else axis.axvspan)(start, end, **shade)
    (axis.set_ylim if vertical else axis.set_xlim)(low, high)


def annotate_rows(axis: Axes, notes: Sequence[str]) -> None:
    """Small text at the right of named rows."""
    at: dict = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    for y, note in enumerate(notes):
        axis.annotate(note, (1, y), (4, 0), va="center", fontsize="small", color="0.3", **at)


def sample_size(counts: Iterable[float]) -> str:
    """``n = 6``, or the range of several sample sizes, for a legend or an axis."""
    known = sorted({int(n) for n in counts if n > 0})
    return f"n = {'–'.join(map(str, dict.fromkeys((known[0], known[-1]))))}" if known else "n = 0"


def name_rows(axis: Axes, names: Sequence[str]) -> None:
    """A y axis of named rows, the first at the top."""
    axis.set_yticks(range(len(names)), list(names))
    axis.set_ylim(max(1, len(names)) - 0.5, -0.5)


def log_y(axis: Axes) -> None:
    """A logarithmic y axis; its ticks are plain numbers if it spans less than two decades."""
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    if low <= 0:  # nothing is drawn
        axis.set_yscale("linear")
        return
    if math.floor(math.log10(high)) > math.ceil(math.log10(low)):  # two powers of ten or more
        axis.yaxis.set_minor_formatter(NullFormatter())
        return
    ticks = _ticks(low, high)
    digits = next(d for d in range(3, 18) if len({f"{t:.{d}g}" for t in ticks}) == len(ticks))
    axis.set_yticks(ticks, [f"{t:.{digits}g}" for t in ticks])
    axis.minorticks_off()


def _ticks(low: float, high: float) -> list[float]:
    """Three or more ticks for a logarithmic axis, as round as possible."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for mantissas in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = [m * 10.0**k for k in powers for m in mantissas if low <= m * 10.0**k <= high]
        if len(ticks) > 2:
            return ticks
    even = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [float(tick) for tick in even if low <= tick <= high]


def legend_handles(axes: Iterable[Axes]) -> dict[str, Artist]:
    """The labeled artists of some panels, each label once."""
    handles: dict[str, Artist] = {}
    for axis in axes:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    return handles


def samples(axis: Axes, looks: Mapping[str, dict]) -> dict[str, Artist]:
    """Lines without data that show looks in a legend, by their labels."""
    return {label: axis.plot([], [], **look)[0] for label, look in looks.items()}


def legend_below(
    figure: Figure, handles: Mapping[str, Artist], ncols: int, place: str = "center"
) -> None:
    """A legend below the panels, at the left, center or right."""
    where: dict = {"loc": f"outside lower {place}", "ncols": ncols}
    figure.legend(list(handles.values()), list(handles), **where)


def say(axis: Axes, words: str) -> str:
    """Write words in the middle of an empty panel; return them as a sentence of the caption."""
    axis.text(0.5, 0.5, words, ha="center", transform=axis.transAxes)
    return f"Here {words}."


def save(figure: Figure, stem: Path) -> None:
    """Write ``stem``.pdf and ``stem``.svg without a date."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.with_suffix(".pdf"), metadata={"CreationDate": None})
    # SVG keeps the layout of this drawing: with its own measure of text, panels would move a little
    figure.set_dpi(DPI)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    undated = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(svg := BytesIO(), format="svg", metadata=undated)
    stem.with_suffix(".svg").write_bytes(compact(svg.getvalue()))
    plt.close(figure)
