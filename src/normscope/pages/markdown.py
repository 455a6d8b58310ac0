"""Markdown: escaped text, tables, marks that stand for tables and figures, and the summary."""

import re
from collections.abc import Mapping
from itertools import starmap
from typing import Any

from normscope.formats import GENERAL
from normscope.pages.figures import FOREST
from normscope.pages.frame import Figure, Frame
from normscope.pages.table import PageTable

# marks: all figures but the forest plot; a document's cards; the small plots of some statements
FIGURES, CARDS, PLOTS = "figures", "cards:", "plots:"
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
    """The mark for a table, a figure, all other figures, or the cards."""
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


def card(card: Mapping[str, Any]) -> str:
    """A card as a heading, its verdict and a list."""
    rerun = [("rerun", f"`{card['command']}`")] if card["command"] else []
    facts = [*card["facts"], *rerun]
    source = f"{card['document']}, {card['where']}"
    lines = [f"#### {escaped(card['statement'])}", f"**{card['shown']}**; {escaped(source)}"]
    items = [f"- {term}: {text if term == 'rerun' else escaped(text)}" for term, text in facts]
    for reading in card["readings"]:
        items.append(f"- reading *{escaped(reading['name'])}*: {escaped(reading['answer'])}")
        parts = [("quote", reading["quote"]), *reading["facts"]]
        items += [f"  - {term}: {escaped(text)}" for term, text in parts if text]
    return "\n\n".join([*lines, escaped(card["finding"]), "\n".join(items)])


def figure(name: str, figure: Figure) -> str:
    """A figure and its caption."""
    title, caption = escaped(figure.title), escaped(figure.caption)
    return f"![{title}](figures/{name}.svg)\n\n*{title}.* {caption}"


def summary(text: str, frame: Frame) -> str:
    """The summary: the text of its templates with tables and figures in place of their marks."""

    def shown(mark: re.Match[str]) -> str:
        name = mark[1]
        if name in (FIGURES, FOREST):
            return "\n\n".join(starmap(figure, frame.plates(name)))
        if name.startswith(CARDS):
            return "\n\n".join(map(card, frame.cards_of(name.removeprefix(CARDS))))
        if name.startswith(PLOTS):
            return ""
        return pipe_table(frame.tables[name])

    return re.sub(r"\n{3,}", "\n\n", MARKED.sub(shown, text))
