r"""A table of text as TeX sets it: columns of numbers by siunitx, words wrapped to fit the line."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from normscope.paper.tex import escaped, plain, visible, with_minus

LINE = 483.0  # pt, 170 mm: what tables are made to fit
LINES = 46  # of a table that stays on one page
# an em in pt, as if all letters were as narrow as those of 8 pt; and \tabcolsep
SIZES = (
    (r"\footnotesize", 8.0, 3.0),
    (r"\scriptsize", 7.5, 2.0),
    (r"\fontsize{6}{7.2}\selectfont", 7.0, 2.0),
)
DASH = "–"
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
class Column:
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
        found = (width(p) for text in texts for word in pieces(text, limit) for p in word)
        return max((*found, self.natural() if self.number is not None else 0), default=0)


@dataclass(frozen=True)
class Layout:
    """How a table is set: the type's command and size, the space beside columns, their widths."""

    command: str
    size: float
    space: float
    limit: int
    widths: tuple[float, ...]

    def wraps(self, column: Column, at: float) -> bool:
        return column.number is None and column.natural() * self.size > at + 0.01

    def lines(self, column: Column, at: float) -> list[int]:
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


def breakable(text: str, limit: int = 18) -> str:
    """Text in which long words may be broken."""
    words = (map(escaped, word) for word in pieces(visible(" ".join(text.split())), limit))
    return " ".join(r"\allowbreak{}".join(word) for word in words)


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


def columns_of(table: pd.DataFrame, *, grouped: bool = True) -> list[Column]:
    """The columns; neighbours that end in the same words after a comma are a group."""
    names = [visible(" ".join(str(name).split())) for name in table.columns]
    ends = [name.rpartition(", ")[2] if ", " in name and grouped else "" for name in names]
    found: list[Column] = []
    for end, run in groupby(range(len(names)), key=lambda i: ends[i]):
        places = list(run)
        group = end if end and len(places) > 1 else ""
        for i in places:
            cells = tuple(visible(" ".join(c.split())) for c in table.iloc[:, i].astype(str))
            name = names[i].removesuffix(f", {group}") if group else names[i]
            found.append(Column(name, group, cells, number_format(cells)))
    return found


def layout(columns: Sequence[Column], line: float = LINE) -> Layout:
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
    columns: Sequence[Column], least: Sequence[float], size: float, room: float
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


def tabular(table: pd.DataFrame, *, breaks: bool = False) -> str:
    r"""A table; one that is longer than a page, or that is to, breaks over pages.

    A short one is a tabular, shrunk where the line is shorter than it. A long one is a longtable:
    what ``\normscopecaption`` holds stands above it.
    """
    if table.empty:
        table = pd.DataFrame({"": ["none"]})
    columns = columns_of(table)
    of = layout(columns)
    each = [of.lines(c, w) for c, w in zip(columns, of.widths, strict=True)]
    lines = sum(max(row) for row in zip(*each, strict=True))
    wrapped = lines > len(table)
    rows = [_row(row) for row in _cells(columns, of)]
    body = ("\n\\addlinespace[3pt]\n" if wrapped else "\n").join(rows)
    preamble = _preamble(columns, of)
    opening = rf"\begingroup{of.command}\setlength{{\tabcolsep}}{{{of.space:g}pt}}%"
    head = f"\\toprule\n{_head(columns, of)}\n\\midrule"
    if breaks or lines > LINES:
        return rf"""% breaks over pages; \normscopecaption stands above it, as \caption{{...}}\\
\providecommand{{\normscopecaption}}{{}}%
{opening}
\setlength{{\LTcapwidth}}{{\linewidth}}%
\begin{{longtable}}{{{preamble}}}
\normscopecaption
{head}
\endfirsthead
{head}
\endhead
\midrule
\endfoot
\bottomrule
\endlastfoot
{body}
\end{{longtable}}%
\endgroup"""
    return rf"""% shrinks where the line is shorter than 170 mm; a table environment may hold it
{opening}
\sbox0{{\begin{{tabular}}{{{preamble}}}
{head}
{body}
\bottomrule
\end{{tabular}}}}%
\ifdim\wd0>\linewidth\resizebox{{\linewidth}}{{!}}{{\usebox0}}\else\usebox0\fi
\endgroup"""


def _preamble(columns: Sequence[Column], of: Layout) -> str:
    def one(column: Column, at: float) -> str:
        if column.number is not None:
            return f"S[{column.number}]"
        if not of.wraps(column, at):
            return "l"
        return rf">{{\raggedright\arraybackslash}}p{{{at / LINE:.4f}\linewidth}}"

    return "".join(one(c, w) for c, w in zip(columns, of.widths, strict=True))


def _cells(columns: Sequence[Column], of: Layout) -> list[list[str]]:
    def one(column: Column, at: float, cell: str) -> str:
        if column.number is not None:
            return plain(cell) or "{--}"
        return breakable(cell, of.limit) if of.wraps(column, at) else escaped(cell)

    texts = [[one(c, w, x) for x in c.cells] for c, w in zip(columns, of.widths, strict=True)]
    return [list(row) for row in zip(*texts, strict=True)]


def _row(cells: Sequence[str]) -> str:
    r"""A row; what ``\\`` or a rule would take for an option of theirs is held apart."""
    guard = "{}" if cells[0][:1] in {"[", "*", "("} else ""
    return f"{guard}{' & '.join(cells)} \\\\"


def _head(columns: Sequence[Column], of: Layout) -> str:
    names = _row([_stack(c, w, of) for c, w in zip(columns, of.widths, strict=True)])
    if not any(c.group for c in columns):
        return names
    above, rules, at = [], [], 1
    for group, run in groupby(columns, key=lambda c: c.group):
        n = len(list(run))
        above.append(rf"\multicolumn{{{n}}}{{c}}{{{escaped(group)}}}" if group else "& " * (n - 1))
        rules += [rf"\cmidrule(lr){{{at}-{at + n - 1}}}"] if group else []
        at += n
    return f"{_row(above)}\n{''.join(rules)}\n{names}"


def _stack(column: Column, at: float, of: Layout) -> str:
    """A header on as many lines as its column's width asks for."""
    lines = [""]
    for word in pieces(column.name, of.limit):
        for i, piece in enumerate(word):
            joined = f"{lines[-1]}{' ' if i == 0 and lines[-1] else ''}{piece}"
            fits = width(joined) * of.size <= at + 0.01 or not lines[-1]
            lines[-1:] = [joined] if fits else [lines[-1], piece]
    text = r"\\{}".join(map(escaped, lines))
    if len(lines) > 1:
        side = "r" if column.number is not None else "l"
        text = rf"\begin{{tabular}}[t]{{@{{}}{side}@{{}}}}{text}\end{{tabular}}"
    return f"{{{text}}}"
