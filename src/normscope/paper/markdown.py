"""Markdown: escaped text, tables, marks that stand for tables and figures, and the summary."""

import re

from normscope.formats import GENERAL
from normscope.paper.frame import Frame
from normscope.paper.table import PageTable

FIGURES = "figures"
MARK = "\ue000"  # a private-use character, which no text contains
MARKED = re.compile(f"{MARK}([^{MARK}]*){MARK}")
MARKUP = re.compile(r"([\\`*<~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;))")
# what begins a list, heading, quotation, rule or link target at the start of a line
OPENING = re.compile(r"^(?:(\d{1,9})(?=[.)](?: |$))|(?=[-+](?: |-|$)|[#>=\[]))")


class Markdown(str):
    """Text that is Markdown already, and is not escaped again."""

    __slots__ = ()


def escaped(text: str) -> str:
    r"""Escape a text, so that none of it is read as markup or HTML.

    Brackets of intervals stay: without "(" or "[" after them they are not links.
    """
    text = MARKUP.sub(r"\\\1", text)
    return text.replace("](", "]\\(").replace("][", "]\\[")


def escaped_word(value: object) -> str:
    """A word of a template: escaped, on one line, and not the beginning of a block."""
    if isinstance(value, Markdown):
        return value
    text = GENERAL.text(value) if isinstance(value, float) else str(value)
    text = " ".join(text.replace(MARK, "\ufffd").split())
    return OPENING.sub(r"\1\\", escaped(text))


def reference(name: str) -> Markdown:
    """The mark for a table, or for all figures."""
    return Markdown(f"{MARK}{name}{MARK}")


def pipe_table(table: PageTable) -> str:
    """A pipe table; "none" if it has no rows."""
    if not table.rows:
        return "none"
    cells = [
        [" ".join(escaped(cell).replace("|", "\\|").split()) for cell in row]
        for row in (table.headings, *table.texts())
    ]
    cells.insert(1, ["---"] * len(table.columns))
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def summary(text: str, frame: Frame) -> str:
    """The summary: the text of its templates with tables and figures in place of their marks."""
    figures = "\n\n".join(
        f"![{escaped(title)}](figures/{name}.svg)\n\n*{escaped(title)}.* {escaped(caption)}"
        for name, (title, caption) in frame.figures.items()
    )
    return MARKED.sub(
        lambda m: figures if m[1] == FIGURES else pipe_table(frame.tables[m[1]]), text
    )
