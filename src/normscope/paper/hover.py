"""What the marks of a figure say when they are pointed at: whose they are, and their numbers.

Points and bars are told, curves are not. Whose a point is says the legend, by colour, marker and
filling; its numbers are those that are drawn, so that nothing needs to be said twice.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb, to_rgba_array
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from normscope.paper.svg import Mark

MOST = 30  # places of a line across or up; with more of both it is a curve
MEAN = "mean"  # label of a point among those that it is the mean of
CUT = (
    "_cut"  # label of what is drawn at the edge of what is shown, with a number that is not its own
)
DPI = 72  # of SVG
NO_MARKER = ("", " ", "none", "None", None)


class Places(FixedLocator):
    """Ticks at all values that there are; what stands aside of one has its name."""

    def __init__(self, places: Sequence[float], names: Sequence[str]) -> None:
        super().__init__(places)
        self.places = np.asarray(places, dtype=float)
        self.names = list(names)

    def name(self, value: float) -> str:
        """Of the nearest place."""
        return self.names[int(np.argmin(np.abs(self.places - value)))]


class LogPlaces(Places):
    """The same on a logarithmic axis."""

    def name(self, value: float) -> str:
        return self.names[int(np.argmin(np.abs(np.log(self.places / value))))]


class _Look(NamedTuple):
    """How marks look; None where that says nothing: grey is no colour, a line has no marker."""

    color: tuple[float, ...] | None
    marker: object
    is_open: bool | None

    def fits(self, other: "_Look") -> bool:
        """Whether marks that look like the other one belong to this entry of a legend."""
        if self.color is None and self.marker is None:
            return False
        pairs = zip(self, other, strict=True)
        return all(own is None or own == seen for own, seen in pairs)


def told(figure: Figure) -> dict[str, Mark]:
    """The marks of a figure by ids, which its artists get; layout and resolution must be final."""
    legends = [legend for legend in figure.findobj(Legend) if isinstance(legend, Legend)]
    marks: dict[str, Mark] = {}
    panels = [axis for axis in figure.findobj(Axes) if isinstance(axis, Axes)]
    for axis in panels:
        own = axis.get_legend()  # says all of its panel; else those that stand outside say it
        entries = _entries(legends if own is None else [own])
        for artist, mark in [*_points(axis, panels, entries), *_bars(axis, panels)]:
            artist.set_gid(f"mark{len(marks)}")
            marks[f"mark{len(marks)}"] = mark
    return marks


def _entries(legends: Sequence[Legend]) -> list[tuple[str, _Look]]:
    """Names and looks that legends give."""
    return [
        (text.get_text(), _entry(handle))
        for legend in legends
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
        if isinstance(handle, Line2D)
    ]


def _entry(handle: Line2D) -> _Look:
    """Of a legend: what its sample stands for."""
    look = _look(handle)
    red, green, blue = to_rgb(handle.get_color())
    if red == green == blue and red > 0:
        return look._replace(color=None)
    return look._replace(is_open=None)


def _look(line: Line2D) -> _Look:
    marker = line.get_marker()
    face = line.get_markerfacecolor()
    is_open = isinstance(face, str) and face in ("none", "white")
    color = tuple(to_rgb(line.get_color()))
    return _Look(color, None, None) if marker in NO_MARKER else _Look(color, marker, is_open)


def _points(
    axis: Axes, panels: Sequence[Axes], entries: Sequence[tuple[str, _Look]]
) -> Iterator[tuple[Line2D, Mark]]:
    """The lines of a panel that are points, with what these say."""
    across, up = (_label(axis, panels, which) for which in "xy")
    height = _whole(axis).bbox.height
    lines = [line for line in axis.lines if _is_told(line)]
    intervals = _intervals(axis, lines)
    for line in lines:
        label = str(line.get_label())
        own = [name for name, entry in entries if entry.fits(_look(line))]
        names = own if label.startswith("_") else [label]
        is_data = line.get_transform() == axis.transData
        words = []
        for x, y in _numbers(line):
            bars = intervals.get((line, x, y), {})
            parts = [_number(axis.xaxis, across, x, bars.get("x"))]
            parts += [_number(axis.yaxis, up, y, bars.get("y"))] * is_data
            if isinstance(axis.yaxis.get_major_locator(), Places):
                parts.reverse()  # the row first
            words.append("; ".join(filter(None, dict.fromkeys([*names, *parts]))))
        seen = line.get_transform().transform(_numbers(line))
        yield line, Mark([(float(left), float(height - low)) for left, low in seen], words)


def _is_told(line: Line2D) -> bool:
    """Whether it is points with numbers of their own."""
    spread = [len(set(values)) for values in zip(*_numbers(line), strict=True)]
    return (
        0 < min(spread, default=0) <= MOST
        and line.get_marker() not in NO_MARKER
        and line.get_label() != CUT
    )


def _numbers(line: Line2D) -> list[tuple[float, float]]:
    """x and y of its points."""
    x, y = (np.asarray(values, dtype=float).tolist() for values in line.get_data(orig=False))
    return list(zip(x, y, strict=True))


def _intervals(
    axis: Axes, lines: Sequence[Line2D]
) -> dict[tuple[Line2D, float, float], dict[str, tuple[float, float]]]:
    """The ends of the bar that is drawn through a point in its colour, by ``x`` or ``y``.

    Of several points on one bar it is that of the one that is called the mean, if one is.
    """
    known: dict = {}
    points = [(line, x, y) for line in lines for x, y in _numbers(line)]
    for color, low, high in _segments(axis):
        on_it = [
            (line, x, y)
            for line, x, y in points
            if to_rgb(line.get_color()) == color
            and low[0] <= x <= high[0]
            and low[1] <= y <= high[1]
        ]
        whose = on_it if len(on_it) == 1 else [p for p in on_it if p[0].get_label() == MEAN]
        which = 0 if low[1] == high[1] else 1
        if len(whose) == 1 and low[which] < high[which]:
            known.setdefault(whose[0], {})["xy"[which]] = low[which], high[which]
    return known


def _segments(axis: Axes) -> Iterator[tuple[tuple[float, ...], ...]]:
    """Colour and ends of every straight line of a panel's collections of lines."""
    for bars in axis.collections:
        if isinstance(bars, LineCollection) and bars.get_label() != CUT:
            colors = [tuple(color[:3]) for color in to_rgba_array(bars.get_edgecolor()).tolist()]
            for i, segment in enumerate(bars.get_segments()):
                if len(segment) == len(("from", "to")):
                    low, high = (tuple(map(float, end)) for end in segment)
                    yield colors[i % len(colors)], low, high


def _bars(axis: Axes, panels: Sequence[Axes]) -> Iterator[tuple]:
    """The bars of a panel: where each is, and how long."""
    across, up = (_label(axis, panels, which) for which in "xy")
    for bars in axis.containers:
        if isinstance(bars, BarContainer):
            label = str(bars.get_label())
            for bar in bars:
                parts = ["" if label.startswith("_") else label]
                if bars.orientation == "vertical":
                    middle = bar.get_x() + bar.get_width() / 2
                    parts.append(_number(axis.xaxis, across, middle))
                    parts.append(_number(axis.yaxis, up, bar.get_height()))
                else:
                    middle = bar.get_y() + bar.get_height() / 2
                    parts.append(_number(axis.yaxis, up, middle))
                    parts.append(_number(axis.xaxis, across, bar.get_width()))
                yield bar, Mark([], ["; ".join(filter(None, parts))])


def _label(axis: Axes, panels: Sequence[Axes], which: str) -> str:
    """What an axis shows: its label, or that at the end of its column or line of panels.

    Rows have names, and need no other. Columns without a label have a title.
    """
    if which == "y" and isinstance(axis.yaxis.get_major_locator(), Places):
        return ""
    alike = [axis, *(other for other in panels if _is_beside(axis, other, which))]
    labels = [a.get_xlabel() if which == "x" else a.get_ylabel() for a in alike]
    if which == "x":
        above = [other for other in panels if _is_beside(other, axis, which)]
        labels += [a.get_title() for a in (*above, axis)]
    return next((" ".join(label.split()) for label in labels if label), "")


def _is_beside(axis: Axes, other: Axes, which: str) -> bool:
    """Whether a panel is one below, or one in the same line."""
    one, two = axis.get_subplotspec(), other.get_subplotspec()
    if one is None or two is None or one.get_gridspec() is not two.get_gridspec():
        return False
    if which == "x":
        return two.colspan == one.colspan and two.rowspan.start > one.rowspan.start
    return two.rowspan == one.rowspan


def _whole(axis: Axes) -> Figure:
    """The whole figure, not a part of it."""
    figure = axis.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure


def _number(
    axis: Axis, label: str, value: float, interval: tuple[float, float] | None = None
) -> str:
    """A value with its interval and what it is of; nothing where it has no name."""
    places = axis.get_major_locator()
    if isinstance(places, Places):
        name = places.name(value) if len(places.names) else ""
        return f"{label}: {name}" if label and name and label != name else name
    words = _digits(value)
    if interval is not None:
        words += f" [{', '.join(map(_digits, interval))}]"
    return f"{label}: {words}" if label else words


def _digits(value: float) -> str:
    """To four digits."""
    return ("−" if value < 0 else "") + f"{abs(value):.4g}"
