"""Effects that change with the size of models, by statement and on the common scale."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.pages.position import scale_of
from normscope.pages.table import Row

CAPTION = """Statements whose effect differs between sizes: the intervals of two or more of them do
not overlap. It grows, shrinks or reverses from the smallest models to the largest, or changes
without such a trend. A line joins cases that differ in nothing but the size and the steps of
training, which are below the axis (blocks x width d, steps). The position
is the distance of an effect from its bound, in the direction of the statement, in units of its
margin; without a margin, of the bound's distance from no difference; without either, of the
quantity itself. Ratios enter by their logarithms. Shaded is what supports the statement; it
has a panel for each such region that its readings have."""
COLUMNS = 3
ROW_MM = 55
WIDTH = 36  # characters of a line of a statement
LINES = 3
LEGEND = 0.14  # of the axis, for a line of the legend
Size = tuple[int, int, int]  # what places an extent: blocks * d^2, then the steps; and its width
Line = Sequence[tuple[Row, str, str]]  # cases that differ in size: the reading, its name, the case


def draw(ledger: Mapping[str, Any], look: Look) -> tuple[Figure, str]:
    """The effects that change, and how many there are."""
    claims = [claim for claim in ledger["claims"] if claim["changing"]]
    panels = [(claim, lines) for claim in claims for lines in _alike(claim)]
    figure, cells = style.wrapped(look.width_mm, ROW_MM, 5, max(1, len(panels)), most=COLUMNS)
    if not claims:
        return figure, style.say(cells[0, 0], "no effect changes with size")
    for axis, (claim, lines) in zip(cells[:, 0], panels, strict=True):
        _panel(axis, claim, lines, look.font_pt - 1.5)
    figure.supylabel("distance from the bound, in its units", fontsize=look.font_pt)
    several = "s" * (len(claims) > 1)
    return figure, f"{len(claims)} statement{several}, {look.level:.0%} intervals."


def _alike(claim: Row) -> Iterator[Sequence[Line]]:
    """The lines of a statement that are supported in the same region of the scale."""
    regions: dict[tuple[float, float] | None, list[Line]] = {}
    for places in claim["changing"]:
        line = [(claim["readings"][name], name, case) for name, case in places]
        scale = scale_of(line[0][0])
        regions.setdefault(scale and scale.holds, []).append(line)
    yield from regions.values()


def _panel(axis: Axes, claim: Row, lines: Sequence[Line], size: float) -> None:
    """The cases of a statement whose effects change, from the smallest size to the largest."""
    sizes: dict[Size, str] = {}
    for line in lines:
        for reading, _, case in line:
            place, words = _size(reading["cases"][case]["extents"][0])
            sizes[place] = words
    order = sorted(sizes)
    for i, line in enumerate(lines):
        x, marks = [], []
        for reading, _, case in line:
            scale, values = scale_of(reading), reading["cases"][case]
            mark = scale.mark(values) if scale else None
            if mark is not None:
                shift = style.dodge(i, len(lines), 0.4)
                x.append(order.index(_size(values["extents"][0])[0]) + shift)
                marks.append([math.nan if end is None else end for end in mark])
        if not marks:
            continue
        at, low, high = zip(*marks, strict=True)
        _, name, case = line[0]
        is_named = [other[0][1] for other in lines].count(name) == 1
        name = (name if is_named else f"{name}: {case}").replace("_", " ")
        look: dict[str, Any] = {"color": f"C{i}", "marker": "o", "label": name}
        style.estimates(axis, x, at, (low, high), **look)
    style.baseline(axis, 0)  # first, because it may extend the axis
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + LEGEND * len(lines) * (high - low))
    axis.legend(fontsize=size - 1, loc="upper left")
    if scale := scale_of(lines[0][0][0]):
        low, high = axis.get_ylim()
        ends = (min(max(end, low), high) for end in scale.holds)
        axis.axhspan(*ends, color="#dff2e7", linewidth=0, zorder=-1)
    axis.set_xticks(range(len(order)), [sizes[place] for place in order], fontsize=size)
    axis.set_xlim(-0.5, len(order) - 0.5)
    words = textwrap.wrap(claim["statement"], WIDTH)
    title = "\n".join(words[:LINES]) + " ..." * (len(words) > LINES)
    change = claim["with_size"].partition(" between ")[0]  # the axis shows the sizes
    axis.set_title(f"{title}\n{change}", fontsize=size, loc="left")


def _size(extent: Row) -> tuple[Size, str]:
    """Where an extent stands among the others, and its words."""
    blocks, d, steps = (extent[key] for key in ("blocks", "d", "steps"))
    words = f"{blocks} x {d},\n{steps:,}"
    return (blocks * d**2, steps, d), words
