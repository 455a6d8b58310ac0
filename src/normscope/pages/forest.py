"""The forest plot of the whole ledger: every statement's effect in units of its bound or margin."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.pages.position import FAR, Mark, places, scale_of
from normscope.pages.statements import (
    document_name,
    is_asserted,
    is_fact,
    is_post_hoc,
)
from normscope.pages.table import Row

CAPTION = """A row has the key of its statement, by which the cards are found. The position is the
distance of an effect from its bound, in the direction of the statement, in units of its margin;
without a margin, of the bound's distance from no difference; without either (open circles), of the
quantity itself. Ratios enter by their logarithms, and their own unit is a factor of two. The axis
is linear near 0 and logarithmic beyond; dotted lines are at -1 and 1. Shaded is what supports the
statement: values beyond the bound, beyond a relevant difference, or within the margin. The large
mark is the case on which the verdict rests, with its interval, in the color of the verdict, or of
the case if the verdict depends; faint marks are the other cases of all readings, each by its own
bound and margin and in its own color. Green is for holds, red for fails, and gray for undecided.
Diamonds (deterministic) and squares (no common scale) lie at the right if the statement holds, at
the left if it fails, and at both sides if it depends; triangles lie beyond the axis. A star marks
post hoc verdicts, and a dagger off-label ones."""
QUESTIONS = "Questions of this project"
PAPER_MM = 192  # height of a page, less its caption
ROW_MM = 3.6
MM_PER_PT = 0.3528
MARGINS = {"left": 0.22, "right": 0.92, "wspace": 1.4}  # room for keys and verdicts
COLORS = {"holds": "#009E73", "fails": "#D55E00", "depends": "#E69F00"}
OTHER = "0.45"  # color of undecided
SIDES = {"holds": [FAR], "fails": [-FAR], "depends": [-FAR, FAR]}  # of what has no scale
TICKS, FINE = (-100, 0, 100), (-10, -1, 1, 10)


def draw(ledger: Mapping[str, Any], look: Look) -> tuple[Figure, str]:
    """The forest plot in two columns, and the sizes that end its caption."""
    groups: dict[str, list[Row]] = {}
    for claim in ledger["claims"]:
        is_claim = is_asserted(ledger, claim)
        name = document_name(ledger, claim) if is_claim else QUESTIONS
        groups.setdefault(name, []).append(claim)
    if QUESTIONS in groups:
        groups[QUESTIONS] = groups.pop(QUESTIONS)
    columns = _columns(groups)
    rows = max(1, *map(_rows, columns))
    height = min(PAPER_MM, ROW_MM * (rows + 1) + 12)
    figure, (axes,) = style.canvas(look.width_mm, height, 1, 2, layout="none")
    figure.subplots_adjust(**MARGINS, top=1 - 2 / height, bottom=10 / height)
    small = min(0.75 * look.font_pt, 0.8 * height / rows / MM_PER_PT)
    for axis, column in zip(axes, columns, strict=True):
        if column or axis is axes[0]:
            _panel(axis, column, small)
        else:
            axis.remove()
    axes[0].set_ylim(rows - 0.4, -0.8)  # the columns share it
    return figure, f"{len(ledger['claims'])} statements, {look.level:.0%} intervals."


def _columns(groups: Mapping[str, list[Row]]) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
    """The documents in two columns of as equal a length as their order allows."""
    names = list(groups)
    splits = [
        ({n: groups[n] for n in names[:i]}, {n: groups[n] for n in names[i:]})
        for i in range(1, len(names) + 1)
    ]
    return min(splits, key=lambda pair: max(map(_rows, pair)), default=({}, {}))


def _rows(column: Mapping[str, list[Row]]) -> int:
    """One row per document, and one per statement."""
    return sum(1 + len(claims) for claims in column.values())


def _panel(axis: Axes, column: Mapping[str, list[Row]], size: float) -> None:
    """The documents of a column, with their statements below them."""
    y = 0
    for name, claims in column.items():
        _label(axis, y, name, size, weight="bold")
        for i, claim in enumerate(claims, y + 1):
            _row(axis, i, claim, size)
        y += len(claims) + 1
    axis.set_xscale("asinh", linear_width=1)
    axis.set_xlim(-FAR * 1.3, FAR * 1.3)
    axis.set_xticks(TICKS, [f"{t}".replace("-", "−") for t in TICKS])
    axis.set_xticks(FINE, [""] * len(FINE), minor=True)
    axis.set_xlabel("distance from the bound")
    axis.axvline(0, color="0.4", linewidth=0.6, zorder=0)
    for margin in (-1, 1):
        axis.axvline(margin, color="0.6", linewidth=0.5, linestyle=":", zorder=0)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)


def _label(axis: Axes, y: float, words: str, size: float, **look: Any) -> None:
    """Words at the left of the panel."""
    place = {"transform": axis.get_yaxis_transform(), "ha": "right", "va": "center"}
    axis.text(-0.02, y, words, fontsize=size, **place, **look)


def _row(axis: Axes, y: int, claim: Row, size: float) -> None:
    """The key of a statement, its marks, and its verdict."""
    _label(axis, y, claim["key"].replace("_", " "), size)
    color = COLORS.get(claim["verdict"], OTHER)  # of a mark, if the readings agree
    right = {"transform": axis.get_yaxis_transform(), "va": "center", "fontsize": size}
    verdict = claim["verdict"] + "†" * claim["off_label"] + "*" * is_post_hoc(claim)
    axis.text(1.01, y, verdict, color=color, **right)
    scale = scale_of(claim["readings"][claim["reading"]])
    main = None
    for mark, reads, decides in places(claim):
        own = COLORS.get(reads, OTHER)
        if decides:
            main = mark
            color = own if claim["verdict"] == "depends" else color
        else:
            _draw(axis, mark, y, color=own, alpha=0.3, markersize=2.5, linewidth=0.8)
    if main is None or scale is None:
        marker = "D" if is_fact(claim) else "s"
        for side in SIDES.get(claim["verdict"], ()):
            axis.plot(side, y, marker=marker, color=color)
        return
    low, high = (min(max(end, -FAR * 1.3), FAR * 1.3) for end in scale.holds)
    axis.fill_between([low, high], y - 0.4, y + 0.4, color="#dff2e7", linewidth=0, zorder=-1)
    fill = {"mfc": "white"} if scale.is_own else {}
    _draw(axis, main, y, color=color, **fill)


def _draw(axis: Axes, mark: Mark, y: int, **look: Any) -> None:
    """A mark with its interval; a triangle at the edge if it lies beyond the axis."""
    at = min(max(mark.at, -FAR), FAR)
    marker = "o" if at == mark.at else ">" if mark.at > 0 else "<"
    if mark.low is None or mark.high is None:
        axis.plot(at, y, marker=marker, **look)
        return
    look = {"linewidth": 1.1, "markersize": 4.5} | look
    width = look.pop("linewidth")
    alpha = look.get("alpha", 1)
    low, high = (min(max(end, -FAR), FAR) for end in (mark.low, mark.high))
    axis.hlines(y, low, high, color=look["color"], linewidth=width, alpha=alpha)
    axis.plot(at, y, marker=marker, linestyle="", **look)
