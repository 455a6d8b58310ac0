r"""A table as TeX sets it: columns of numbers by siunitx, words wrapped to fit the line."""

from collections.abc import Sequence
from itertools import groupby

from jinja2 import Environment

from normscope.paper.layout import LINE, Layout, PrintColumn, columns_of, layout, pieces, width
from normscope.paper.table import PageTable
from normscope.paper.template import fill, open_template
from normscope.paper.tex import Tex, escaped, plain, visible

TEMPLATE = "table.tex"
LINES = 46  # of a table that stays on one page


def breakable(text: str, limit: int = 18) -> str:
    """Text in which long words may be broken."""
    words = (map(escaped, word) for word in pieces(visible(" ".join(text.split())), limit))
    return " ".join(r"\allowbreak{}".join(word) for word in words)


def tabular(table: PageTable, templates: Environment, *, breaks: bool = False) -> str:
    r"""A table; one that is longer than a page, or that is to, breaks over pages.

    A short one is a tabular, shrunk where the line is shorter than it. A long one is a longtable:
    what ``\normscopecaption`` holds stands above it.
    """
    shown = table if table.rows else PageTable(table.title, ("",), (("none",),))
    columns = columns_of(shown)
    setting = layout(columns)
    each = [setting.lines(c, w) for c, w in zip(columns, setting.widths, strict=True)]
    lines = sum(max(row) for row in zip(*each, strict=True))
    apart = "\n\\addlinespace[3pt]\n" if lines > len(shown.rows) else "\n"
    words = {
        "type": setting.command,
        "space": f"{setting.space:g}",
        "preamble": _preamble(columns, setting),
        "head": _head(columns, setting),
        "body": apart.join(_row(row) for row in _cells(columns, setting)),
    }
    is_tex = {name: Tex(text) for name, text in words.items()}
    return fill(open_template(templates, TEMPLATE), {**is_tex, "long": breaks or lines > LINES})


def _preamble(columns: Sequence[PrintColumn], setting: Layout) -> str:
    def one(column: PrintColumn, at: float) -> str:
        if column.number is not None:
            return f"S[{column.number}]"
        if not setting.wraps(column, at):
            return "l"
        return rf">{{\raggedright\arraybackslash}}p{{{at / LINE:.4f}\linewidth}}"

    return "".join(one(c, w) for c, w in zip(columns, setting.widths, strict=True))


def _cells(columns: Sequence[PrintColumn], setting: Layout) -> list[list[str]]:
    def one(column: PrintColumn, at: float, cell: str) -> str:
        if column.number is not None:
            return plain(cell) or "{--}"
        return breakable(cell, setting.limit) if setting.wraps(column, at) else escaped(cell)

    texts = [[one(c, w, x) for x in c.cells] for c, w in zip(columns, setting.widths, strict=True)]
    return [list(row) for row in zip(*texts, strict=True)]


def _row(cells: Sequence[str]) -> str:
    r"""A row; what ``\\`` or a rule would take for an option of theirs is held apart."""
    guard = "{}" if cells[0][:1] in {"[", "*", "("} else ""
    return f"{guard}{' & '.join(cells)} \\\\"


def _head(columns: Sequence[PrintColumn], setting: Layout) -> str:
    names = _row([_stack(c, w, setting) for c, w in zip(columns, setting.widths, strict=True)])
    if not any(c.group for c in columns):
        return names
    above, rules, at = [], [], 1
    for group, run in groupby(columns, key=lambda c: c.group):
        n = len(list(run))
        above.append(rf"\multicolumn{{{n}}}{{c}}{{{escaped(group)}}}" if group else "& " * (n - 1))
        rules += [rf"\cmidrule(lr){{{at}-{at + n - 1}}}"] if group else []
        at += n
    return f"{_row(above)}\n{''.join(rules)}\n{names}"


def _stack(column: PrintColumn, at: float, setting: Layout) -> str:
    """A header on as many lines as its column's width asks for."""
    lines = [""]
    for word in pieces(column.name, setting.limit):
        for i, piece in enumerate(word):
            joined = f"{lines[-1]}{' ' if i == 0 and lines[-1] else ''}{piece}"
            fits = width(joined) * setting.size <= at + 0.01 or not lines[-1]
            lines[-1:] = [joined] if fits else [lines[-1], piece]
    text = r"\\{}".join(map(escaped, lines))
    if len(lines) > 1:
        side = "r" if column.number is not None else "l"
        text = rf"\begin{{tabular}}[t]{{@{{}}{side}@{{}}}}{text}\end{{tabular}}"
    return f"{{{text}}}"
