"""Tables in TeX: numbers in columns of siunitx, long texts in paragraphs that fill the line.

Widths are estimated in characters. A line of 170 mm has ``LINE`` of them in the largest type.
"""

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from jinja2 import Environment

from normscope.pages.table import Cell, Column, PageTable
from normscope.pages.template import fill
from normscope.pages.tex import Tex, digits, escaped, visible, with_minus

TEMPLATE = "table.tex"
LINES = 46  # lines of a table that fit on one page
LINE = 114  # characters
SHORT = (18, 13, 9)  # characters of cells that stay on one line; as few as the line needs
POWER = 6  # additional characters of a power of ten
WORD = 13  # characters, beyond which words of headings and paragraphs are broken
LONG = 300  # characters, beyond which a text makes its column no wider
# type, space between columns in pt, and its size relative to the largest, by number of columns
TYPES = (
    (7, r"\footnotesize", 3, 1.0),
    (10, r"\scriptsize", 2.5, 0.94),
    (99, r"\fontsize{6}{7.2}\selectfont", 1.5, 0.88),
)


@dataclass(frozen=True)
class TexColumn:
    """A column of a table in TeX.

    Args:
        title: what stands above it.
        cells: as text; in columns of numbers, as siunitx reads them, and all else in braces.
        is_numeric: whether it is a column of numbers.
        wraps: whether its cells are paragraphs.
    """

    title: str
    cells: tuple[str, ...]
    is_numeric: bool
    wraps: bool

    @cached_property
    def heading(self) -> list[str]:
        """The lines of its title."""
        longest = max(map(len, self.title.split()), default=1)
        return textwrap.wrap(self.title, max(self.widest, min(WORD, longest))) or [""]

    @cached_property
    def widest(self) -> int:
        """Characters of its longest cell; in a paragraph, of its longest unbroken word."""
        if self.wraps:
            words = (word for cell in self.cells for word in cell.split())
            return min(WORD, max(map(len, words), default=1))
        return shape(self.cells)[1] if self.is_numeric else max(map(len, self.cells))

    @cached_property
    def width(self) -> int:
        """Least width in characters."""
        return max(self.widest, *map(len, self.heading))

    @property
    def ink(self) -> int:
        """Length of its texts, clipped; paragraph columns share the line in this proportion."""
        return sum(min(len(cell), LONG) for cell in self.cells)

    def preamble(self, width: float) -> str:
        r"""Its specification; ``width`` is that of a paragraph, as a share of the line."""
        if self.is_numeric:
            options = "group-digits=integer,retain-explicit-plus"
            return f"S[table-format={shape(self.cells)[0]},{options}]"
        if self.wraps:
            return rf">{{\raggedright\arraybackslash}}p{{{width:.4f}\linewidth}}"
        return "l"

    def set_heading(self, width: float) -> str:
        """The heading in braces, which keep siunitx from reading it as a number."""
        if self.wraps:
            return f"{{{breakable(self.title, 0.9 * width)}}}"
        text = r"\\{}".join(map(escaped, self.heading))
        if len(self.heading) > 1:
            text = rf"\shortstack[{'r' if self.is_numeric else 'l'}]{{{text}}}"
        return f"{{{text}}}"

    def set_cell(self, row: int, width: float) -> str:
        """The cell of a row."""
        cell = self.cells[row]
        if self.is_numeric:
            return cell
        return breakable(cell, width) if self.wraps else escaped(cell)


def columns_of(table: PageTable, short: int) -> list[TexColumn]:
    """The columns of a table; those with cells of more than ``short`` characters wrap."""
    columns = []
    for i, column in enumerate(table.columns):
        is_numeric = table.is_numeric(i)
        write = _number if is_numeric else _text
        cells = tuple(write(column, cell) for cell in table.cells(i))
        wraps = not is_numeric and max(map(len, cells)) > short
        columns.append(TexColumn(visible(column.title), cells, is_numeric, wraps))
    return columns


def _text(column: Column, cell: Cell) -> str:
    return visible(column.text(cell))


def _number(column: Column, cell: Cell) -> str:
    """A cell of a column of numbers; siunitx prints braces as text."""
    form = column.format
    if form is None or not isinstance(cell, int | float) or form.is_tiny(cell):
        return f"{{{escaped(column.text(cell))}}}"
    return digits(cell, form)


def shape(cells: Sequence[str]) -> tuple[str, int]:
    """The table-format of a column of numbers for siunitx, and its width in characters."""
    numbers = [cell for cell in cells if not cell.startswith("{")] or ["0"]
    mantissas, _, powers = zip(*(number.partition("e") for number in numbers), strict=True)
    wholes, _, decimals = zip(*(m.lstrip("+-").partition(".") for m in mantissas), strict=True)
    signs = "".join(mantissas)
    sign = "-" if "-" in signs else "+" if "+" in signs else ""
    whole, decimal = max(map(len, wholes)), max(map(len, decimals))
    power = max(len(p.lstrip("-")) for p in powers)
    exponent = f"e{'-' if '-' in ''.join(powers) else ''}{power}" if power else ""
    width = len(sign) + whole + decimal + 1 + (POWER + power if power else 0)
    return f"{sign}{whole}.{decimal}{exponent}", max(width, *map(len, cells), 1)


def widths(columns: Sequence[TexColumn], line: float) -> list[float]:
    """Widths of the columns in characters; paragraph columns share what the others leave."""
    room = line - sum(c.width for c in columns if not c.wraps)
    least = sum(c.width for c in columns if c.wraps)
    ink = sum(c.ink for c in columns if c.wraps)

    def share(column: TexColumn) -> float:
        if room < least:
            return column.width * max(room / least, 0.2)
        return column.width + (room - least) * column.ink / ink

    return [share(c) if c.wraps else c.width for c in columns]


def breakable(text: str, limit: float = 18) -> str:
    """Escaped text whose words of more than ``limit`` characters may break into lines."""

    def pieces(word: str) -> list[str]:
        if len(word) <= limit:
            return [word]
        size = max(1, int(limit / (1 + word.isupper())))  # capitals are wide
        parts = re.findall(r".+?(?:[_/:=,.\-](?=[^_/:=,.\-\d])|$)", word)
        return [part[i : i + size] for part in parts for i in range(0, len(part), size)]

    words = with_minus(visible(text)).split()
    return " ".join(r"\allowbreak{}".join(map(escaped, pieces(word))) for word in words)


def tabular(table: PageTable, templates: Environment, *, breaks: bool = False) -> str:
    r"""A table; one that is longer than a page, or with ``breaks``, is a longtable.

    A short table is a tabular, which shrinks if the line is shorter than 170 mm. The caption of a
    longtable is ``\normscopecaption``.
    """
    shown = table if table.rows else PageTable(table.title, (Column(""),), (("none",),))
    command, space, size = next(t[1:] for t in TYPES if len(shown.columns) <= t[0])
    line = LINE / size - space * len(shown.columns) / 2
    choices = [columns_of(shown, short) for short in SHORT]
    fitting = (cs for cs in choices if sum(c.width for c in cs) <= line)
    columns = next(fitting, choices[-1])
    placed = list(zip(columns, widths(columns, line), strict=True))
    rows = range(len(shown.rows))
    lines = [max(len(c.cells[i]) / w if c.wraps else 1 for c, w in placed) for i in rows]
    body = [_row(c.set_cell(i, w) for c, w in placed) for i in rows]
    words = {
        "type": command,
        "space": f"{space:g}",
        "preamble": "".join(c.preamble(w * size / LINE) for c, w in placed),
        "head": _row(c.set_heading(w) for c, w in placed),
        "body": ("\n\\addlinespace[3pt]\n" if max(lines) > 1 else "\n").join(body),
    }
    is_long = breaks or sum(1.2 * line + 0.3 for line in lines) > LINES
    return fill(templates, TEMPLATE, {k: Tex(v) for k, v in words.items()} | {"long": is_long})


def _row(cells: Iterable[str]) -> str:
    r"""A row; braces keep ``\\`` or a rule from reading its first cell as their option."""
    text = " & ".join(cells)
    return f"{'{}' if text[:1] in {'[', '*', '('} else ''}{text} \\\\"
