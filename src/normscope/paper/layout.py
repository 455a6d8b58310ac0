"""How a table fits a line: columns of numbers and of words, their widths, the size of the type.

For LaTeX and for print, whose type is set to the same measure.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from normscope.paper.table import PageTable
from normscope.paper.tex import plain, visible, with_minus
from normscope.words import DASH

LINE = 483.0  # pt, 170 mm: what tables are made to fit
# an em in pt, as if all letters were as narrow as those of 8 pt; and \tabcolsep
SIZES = (
    (r"\footnotesize", 8.0, 3.0),
    (r"\scriptsize", 7.5, 2.0),
    (r"\fontsize{6}{7.2}\selectfont", 7.0, 2.0),
)
INTERVAL = r"\[[-−+\d.e]+, [-−+\d.e]+\]"
# widths of Latin Modern at 8 pt, in thousandths of an em; what is not here counts as 1090
WIDTHS = {
    c: width
    for width, characters in {
        300: " \u00a0!',.:;[]`il|",
        420: 'fj-I"()rts',
        480: "cez",
        530: "?$*/0123456789\\ago{}",
        590: "^kqvxy~JSbdhnpu–",
        720: "ZLFEPB",
        830: "CTwRAHNUVXY_DK&+<=>@GOQ−",
        970: "#%mM",
    }.items()
    for c in characters
}


@dataclass(frozen=True)
class PrintColumn:
    """A column of a table.

    Args:
        name: its header, without the group's.
        group: what stands above it and its neighbours, or nothing.
        cells: as text.
        number: siunitx's options if all cells are numbers or dashes, else None.
    """

    name: str
    group: str
    cells: tuple[str, ...]
    number: str | None

    def natural(self) -> float:
        """Width of the widest cell on one line, in em."""
        if self.number is not None:
            return _width_of(self.number)
        return max(map(width, self.cells), default=0)

    def least(self, limit: int) -> float:
        """Width of what is not broken, in em."""
        texts = (self.name, *(() if self.number is not None else self.cells))
        parts = (width(p) for text in texts for word in pieces(text, limit) for p in word)
        return max((*parts, self.natural() if self.number is not None else 0), default=0)


@dataclass(frozen=True)
class Layout:
    """How a table is set: the type's command and size, the space beside columns, their widths."""

    command: str
    size: float
    space: float
    limit: int
    widths: tuple[float, ...]

    def wraps(self, column: PrintColumn, at: float) -> bool:
        return column.number is None and column.natural() * self.size > at + 0.01

    def lines(self, column: PrintColumn, at: float) -> list[int]:
        """How many lines each cell takes, about."""
        if not self.wraps(column, at):
            return [1] * len(column.cells)
        return [math.ceil(1.15 * width(cell) * self.size / at) for cell in column.cells]


def width(text: str) -> float:
    """Of a text on one line, in em, with a little to spare."""
    return 1.03 * sum(WIDTHS.get(c, 1090) for c in with_minus(text)) / 1000


def _width_of(number: str) -> float:
    """Of a column of numbers, from its table-format, in em."""
    shape = number.partition(",")[0].removeprefix("table-format=")
    digits, _, power = shape.partition("e")
    sign = 0.83 * digits.startswith(("-", "+"))
    whole, decimal = (int(n) for n in digits.lstrip("+-").split("."))
    places = 0.55 * (whole + decimal) + 0.2 * (whole // 5) + 0.3 * (decimal > 0)
    return sign + places + (2.6 + 0.45 * len(power.replace("-", "  ")) if power else 0)


def pieces(text: str, limit: int) -> list[list[str]]:
    """Words; one of more than so many letters in pieces between which a line may end."""

    def split(word: str) -> list[str]:
        if "\u00a0" in word:
            return [word]
        if len(word) <= limit:
            return [word]
        parts = re.findall(r".+?(?:[_/:=,\-](?=[^_/:=,\-])|\.(?=[^\d.])|$)", word)
        hard = max(14, limit) if limit > 5 else limit
        return [p[i : i + hard] for p in parts for i in range(0, len(p), hard)]

    kept = re.sub(INTERVAL, lambda m: kept_together(m[0], limit), with_minus(text))
    return [split(word) for word in re.split(r"[ \t\n]+", kept) if word]


def kept_together(interval: str, limit: int) -> str:
    """An interval that is no longer than the longest words, with a space that does not break."""
    return interval.replace(", ", ",\u00a0") if len(interval) <= limit + 6 else interval


def number_format(cells: Sequence[str]) -> str | None:
    """siunitx's options of a column of numbers and dashes; None of any other column."""
    numbers = [plain(cell) for cell in cells if cell != DASH]
    if not numbers or None in numbers:
        return None
    parts = [re.fullmatch(r"([-+]?)(\d*)\.?(\d*)(?:e(-?)(\d+))?", n or "") for n in numbers]
    signs, wholes, decimals, negatives, powers = zip(
        *(part.groups() for part in parts if part), strict=True
    )
    sign = "-" if "-" in signs else "+" if "+" in signs else ""
    whole, decimal = max(1, *map(len, wholes)), max(map(len, decimals))
    power = max(len(p or "") for p in powers)
    exponent = f"e{'-' if '-' in negatives else ''}{power}" if power else ""
    options = "group-digits=integer,retain-explicit-plus"
    return f"table-format={sign}{whole}.{decimal}{exponent},{options}"


def columns_of(table: PageTable, *, grouped: bool = True) -> list[PrintColumn]:
    """The columns; neighbours that end in the same words after a comma are a group."""
    names = [visible(" ".join(name.split())) for name in table.columns]
    ends = [name.rpartition(", ")[2] if ", " in name and grouped else "" for name in names]
    columns: list[PrintColumn] = []
    for end, run in groupby(range(len(names)), key=lambda i: ends[i]):
        places = list(run)
        group = end if end and len(places) > 1 else ""
        for i in places:
            cells = tuple(visible(" ".join(cell.split())) for cell in table.cells(i))
            name = names[i].removesuffix(f", {group}") if group else names[i]
            columns.append(PrintColumn(name, group, cells, number_format(cells)))
    return columns


def layout(columns: Sequence[PrintColumn], line: float = LINE) -> Layout:
    """The largest type, and the fewest broken words, with which the columns fit the line."""
    command, size, space = SIZES[-1]
    for limit in (18, 12, 9, 7, 5, 3):
        for command, size, space in SIZES:
            room = line - 2 * space * len(columns)
            least = [column.least(limit) * size for column in columns]
            if sum(least) <= room:
                widths = _shared(columns, least, size, room)
                return Layout(command, size, space, limit, widths)
    least = [column.least(3) * size for column in columns]
    return Layout(command, size, space, 3, tuple(least))


def _shared(
    columns: Sequence[PrintColumn], least: Sequence[float], size: float, room: float
) -> tuple[float, ...]:
    """Widths: as wide as they need if that fits, else more to those with more in them."""
    unbroken = [max(size * c.natural(), m) for c, m in zip(columns, least, strict=True)]
    least = unbroken if sum(unbroken) <= room else least
    most = [
        max(size * max(c.natural(), width(c.name)), m) for c, m in zip(columns, least, strict=True)
    ]
    if sum(most) <= room:
        return tuple(most)
    ink = [size * sum(width(cell) for cell in (c.name, *c.cells)) for c in columns]

    def at(level: float) -> list[float]:
        return [min(b, max(a, level * i**0.65)) for a, b, i in zip(least, most, ink, strict=True)]

    low, high = 0.0, 1e6
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle)) <= room else (low, middle)
    return tuple(at(low))
