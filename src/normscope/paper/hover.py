"""Tooltips of a figure: the series, numbers and intervals of its points and bars.

A drawing calls `tell` where it plots; `collect` adds the labels of the axes and the numbers.
"""

from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator
from numpy.typing import ArrayLike

from normscope.paper.svg import Mark

MEAN = "mean"  # the series of a mean among the points of its models
DPI = 72  # of SVG


class Places(FixedLocator):
    """Ticks with names; a point that is shifted from its tick still has the name of the tick."""

    def __init__(
        self, places: Sequence[float], names: Sequence[str], *, is_log: bool = False
    ) -> None:
        super().__init__(places)
        self.scale = np.log if is_log else np.asarray
        self.at = self.scale(np.asarray(places, dtype=float))
        self.names = list(names)

    def name(self, value: float) -> str:
        """The name of the nearest tick."""
        return self.names[int(np.argmin(np.abs(self.at - self.scale(value))))]


Ends = tuple[ArrayLike, ArrayLike]  # low and high ends of the intervals of some points


class _Told(NamedTuple):
    """The tooltip of an artist: its series, and the intervals along x and y."""

    series: tuple[str, ...]
    x: Ends | None
    y: Ends | None


_TOLD: WeakKeyDictionary[Artist, _Told] = WeakKeyDictionary()


def tell(
    artist: Line2D | Rectangle, *series: str, x: Ends | None = None, y: Ends | None = None
) -> None:
    """Give the points of a line, or a horizontal bar, tooltips.

    Args:
        artist: the points or the bar; the tooltips show the numbers that are drawn.
        series: the names of what it shows, as the legend has them.
        x: ends of the intervals along x, one pair per point; a pair with NaN is left out.
        y: ends of the intervals along y.
    """
    _TOLD[artist] = _Told(series, x, y)


def collect(figure: Figure) -> dict[str, Mark]:
    """The tooltips of a figure by ids, which the artists receive.

    The layout and the resolution of the figure must be final.
    """
    panels = [axis for axis in figure.findobj(Axes) if isinstance(axis, Axes)]
    marks: dict[str, Mark] = {}
    for artist in figure.findobj(lambda artist: artist in _TOLD):
        mark = _mark(figure, panels, artist)
        if mark.words:  # lines may be empty
            artist.set_gid(f"mark{len(marks)}")
            marks[f"mark{len(marks)}"] = mark
    return marks


def _mark(figure: Figure, panels: Sequence[Axes], artist: Artist) -> Mark:
    """The places and words of one artist."""
    axis = artist.axes
    assert isinstance(axis, Axes)
    if isinstance(artist, Rectangle):
        points = np.array([[artist.get_width(), artist.get_y() + artist.get_height() / 2]])
        places = []
    else:
        assert isinstance(artist, Line2D)
        points = np.column_stack([np.asarray(v, float) for v in artist.get_data(orig=False)])
        seen = artist.get_transform().transform(points)
        places = [(float(x), float(figure.bbox.height - y)) for x, y in seen]
    parts = [_numbers(axis.xaxis, _label(axis, panels, "x"), points[:, 0], _TOLD[artist].x)]
    # y is left out where it is not a value of the axis
    if not places or artist.get_transform() == axis.transData:
        parts.append(_numbers(axis.yaxis, _label(axis, panels, "y"), points[:, 1], _TOLD[artist].y))
    if isinstance(axis.yaxis.get_major_locator(), Places):
        parts.reverse()  # the row first
    values = ([*_TOLD[artist].series, *numbers] for numbers in zip(*parts, strict=True))
    return Mark(places, ["; ".join(filter(None, dict.fromkeys(words))) for words in values])


def _label(axis: Axes, panels: Sequence[Axes], which: str) -> str:
    """The label of an axis, or that of the panels in its row or column; for x also a title.

    Rows with names need no label.
    """
    if which == "y" and isinstance(axis.yaxis.get_major_locator(), Places):
        return ""
    alike = [axis, *(other for other in panels if _is_aligned(axis, other, which))]
    labels = [a.get_xlabel() if which == "x" else a.get_ylabel() for a in alike]
    if which == "x":
        above = [other for other in panels if _is_aligned(other, axis, which)]
        labels += [a.get_title() for a in (*above, axis)]
    return next((" ".join(label.split()) for label in labels if label), "")


def _is_aligned(axis: Axes, other: Axes, which: str) -> bool:
    """Whether another panel is below this one (x), or in the same row (y)."""
    one, two = axis.get_subplotspec(), other.get_subplotspec()
    if one is None or two is None or one.get_gridspec() is not two.get_gridspec():
        return False
    if which == "x":
        return two.colspan == one.colspan and two.rowspan.start > one.rowspan.start
    return two.rowspan == one.rowspan


def _numbers(axis: Axis, label: str, values: np.ndarray, ends: Ends | None) -> list[str]:
    """The label with each value and its interval, or with the name of the tick."""
    places, before = axis.get_major_locator(), f"{label}: " if label else ""
    if isinstance(places, Places):
        names = [places.name(value) if len(places.names) else "" for value in values]
        return [name if name in ("", label) else before + name for name in names]
    low, high = np.broadcast_arrays(*(ends or (np.nan, np.nan)), values)[:2]
    return [
        f"{before}{_digits(value)}" + (f" [{_digits(a)}, {_digits(b)}]" if a < b else "")
        for value, a, b in zip(values, low, high, strict=True)
    ]


def _digits(value: float) -> str:
    """A number with four significant digits."""
    return ("−" if value < 0 else "") + f"{abs(value):.4g}"
