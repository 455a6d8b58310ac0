"""Tooltips of a figure: the series, numbers and intervals of its points and bars.

A drawing calls `tell` where it plots; `collect` adds the labels of the axes and the numbers.
"""

from collections.abc import Iterator, Sequence
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


class _Told(NamedTuple):
    """What a drawing has said about an artist: the series, and the intervals along x and y."""

    series: tuple[str, ...]
    x: tuple[ArrayLike, ArrayLike] | None
    y: tuple[ArrayLike, ArrayLike] | None


_TOLD: WeakKeyDictionary[Artist, _Told] = WeakKeyDictionary()


def tell(
    artist: Line2D | Rectangle,
    *series: str,
    x: tuple[ArrayLike, ArrayLike] | None = None,
    y: tuple[ArrayLike, ArrayLike] | None = None,
) -> None:
    """Give the points of a line, or a horizontal bar, tooltips.

    Args:
        artist: the points or the bar; its numbers are those that are drawn.
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
    tooltip, axis = _TOLD[artist], artist.axes
    assert isinstance(axis, Axes)
    if isinstance(artist, Rectangle):
        middle = artist.get_y() + artist.get_height() / 2
        return Mark([], list(_words(axis, panels, tooltip, [(artist.get_width(), middle)])))
    assert isinstance(artist, Line2D)
    points = np.column_stack([np.asarray(v, float) for v in artist.get_data(orig=False)])
    seen = artist.get_transform().transform(points)
    places = [(float(x), float(figure.bbox.height - y)) for x, y in seen]
    is_data = artist.get_transform() == axis.transData
    return Mark(places, list(_words(axis, panels, tooltip, points.tolist(), is_data=is_data)))


def _words(
    axis: Axes,
    panels: Sequence[Axes],
    tooltip: _Told,
    points: Sequence[Sequence[float]],
    *,
    is_data: bool = True,
) -> Iterator[str]:
    """The tooltip of each point; y is left out where it is no value of the axis."""
    across, up = _label(axis, panels, "x"), _label(axis, panels, "y")
    intervals = [_pairs(ends, len(points)) for ends in (tooltip.x, tooltip.y)]
    for (x, y), of_x, of_y in zip(points, *intervals, strict=True):
        parts = [_number(axis.xaxis, across, x, of_x)]
        parts += [_number(axis.yaxis, up, y, of_y)] * is_data
        if isinstance(axis.yaxis.get_major_locator(), Places):
            parts.reverse()  # the row first
        yield "; ".join(filter(None, dict.fromkeys([*tooltip.series, *parts])))


def _pairs(ends: tuple[ArrayLike, ArrayLike] | None, n: int) -> np.ndarray:
    """One low and high end per point, ``[n, 2]``, NaN where there are none."""
    low, high = ends or (np.nan, np.nan)
    return np.column_stack([np.broadcast_to(np.asarray(end, float), n) for end in (low, high)])


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


def _number(axis: Axis, label: str, value: float, interval: np.ndarray) -> str:
    """The label, value and interval, or the name of the tick."""
    places = axis.get_major_locator()
    if isinstance(places, Places):
        name = places.name(value) if len(places.names) else ""
        return f"{label}: {name}" if label and name and label != name else name
    words = _digits(value)
    if interval[0] < interval[1]:
        words += f" [{', '.join(map(_digits, interval))}]"
    return f"{label}: {words}" if label else words


def _digits(value: float) -> str:
    """A number with four significant digits."""
    return ("−" if value < 0 else "") + f"{abs(value):.4g}"
