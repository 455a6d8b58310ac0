"""Markdown: text that is escaped, tables, marks of what stands in a text, and the summary."""

import re

from normscope.paper.frame import Frame
from normscope.paper.table import PageTable

FIGURES = "figures"
MARK = "\ue000"  # for private use: no word of a text has it
MARKED = re.compile(f"{MARK}([^{MARK}]*){MARK}")
MARKUP = re.compile(r"([\\`*<~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;))")
# what would begin a list, a heading, a quotation, a rule or a link's target at a line's start
OPENING = re.compile(r"^(?:(\d{1,9})(?=[.)](?: |$))|(?=[-+](?: |-|$)|[#>=\[]))")


class Markdown(str):
    """Text in Markdown already, which is not escaped again."""

    __slots__ = ()


def escaped(text: str) -> str:
    r"""Text as Markdown has it, so that none of it is taken for markup or HTML.

    Brackets of intervals stay as they are: they are no link without what follows.
    """
    text = MARKUP.sub(r"\\\1", text)
    return text.replace("](", "]\\(").replace("][", "]\\[")


def escaped_word(value: object) -> str:
    """A value among words: escaped, on one line, and nothing that begins a block."""
    if isinstance(value, Markdown):
        return value
    text = " ".join(str(value).replace(MARK, "\ufffd").split())
    return OPENING.sub(r"\1\\", escaped(text))


def reference(name: str) -> Markdown:
    """The mark at which a table, or all figures, stand."""
    return Markdown(f"{MARK}{name}{MARK}")


def pipe_table(table: PageTable) -> str:
    """A pipe table; "none" where there is no row."""
    if not table.rows:
        return "none"
    cells = [
        [" ".join(escaped(cell).replace("|", "\\|").split()) for cell in row]
        for row in (table.columns, *table.rows)
    ]
    cells.insert(1, ["---"] * len(table.columns))
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def summary(text: str, frame: Frame) -> str:
    """The summary: the text of its templates with tables and figures at their marks."""
    figures = "\n\n".join(
        f"![{escaped(title)}](figures/{name}.svg)\n\n*{escaped(title)}.* {escaped(caption)}"
        for name, (title, caption) in frame.figures.items()
    )
    return MARKED.sub(
        lambda m: figures if m[1] == FIGURES else pipe_table(frame.tables[m[1]]), text
    )
