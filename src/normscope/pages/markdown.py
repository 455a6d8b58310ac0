"""Markdown of pages: text that is data is escape, so that none of it is read as markup."""

import re

from normscope.formats import GENERAL
from normscope.pages.table import PageTable

MARKUP = re.compile(r"([\\`*<~{|]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;))")
# what begins a list, heading, quotation, rule, division or link target at the start of a line
OPENING = re.compile(r"^(?:(\d{1,9})(?=[.)](?: |$))|(?=[-+](?: |-|$)|[#>=\[:]))")


class Markdown(str):
    """Text that is Markdown already, and is not escaped again."""

    __slots__ = ()


def escape(text: str) -> str:
    r"""Escape a text, so that none of it is read as markup or HTML.

    Brackets of intervals stay: without "(" or "[" after them they are not links.
    """
    text = MARKUP.sub(r"\\\1", text)
    return text.replace("](", "]\\(").replace("][", "]\\[")


def escape_word(value: object) -> str:
    """A word of a template: escape, on one line, and not the beginning of a block."""
    if isinstance(value, Markdown):
        return value
    text = GENERAL.text(value) if isinstance(value, float) else str(value)
    return OPENING.sub(r"\1\\", escape(" ".join(text.split())))


def code(text: str) -> Markdown:
    """A text on one line as code."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return Markdown(f"{fence} {' '.join(text.split())} {fence}")


def pipe_table(table: PageTable) -> str:
    """A pipe table; "none" if it has no rows."""
    return _rows(table) if table.rows else "none"


def titled_table(name: str, table: PageTable) -> Markdown:
    """A table with its title, which links to ``#table-<name>`` lead to; "none" without rows."""
    if not table.rows:
        return Markdown("none")
    place = name.replace(".", "-")
    title = escape_word(table.title)
    return Markdown(f"::: {{#table-{place} .table}}\n{title}\n\n{_rows(table)}\n:::")


def figure(name: str, title: str, caption: str) -> Markdown:
    """A figure with its caption, which links to ``#figure-<name>`` lead to."""
    words = f"**{escape_word(title)}.** {escape(' '.join(caption.split()))}"
    image = f"![](figures/{name}.svg)"
    return Markdown(f"::: {{#figure-{name} .figure}}\n{image}\n\n{words}\n:::")


def _rows(table: PageTable) -> str:
    """The headings, their alignment, and the rows."""
    rows = [
        [" ".join(escape(cell).split()) for cell in row] for row in (table.headings, *table.texts())
    ]
    rows.insert(1, ["---:" if table.is_numeric(i) else "---" for i in range(len(table.columns))])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
