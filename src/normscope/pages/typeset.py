"""The summary as PDF: its blocks and tables as data, which a Typst template lays out.

No text is ever part of a program: the template reads it from JSON.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import typst
from markdown_it.token import Token

from normscope.errors import Explained
from normscope.pages.blocks import Block, blocks
from normscope.pages.figures import FOREST, REACH
from normscope.pages.frame import Figure, Frame
from normscope.pages.table import PageTable

Run = dict[str, str]  # text, its style, and the target of a link
Part = dict[str, Any]
LINE = 125  # characters of the columns that fit a line
CLIPPED = 40  # characters, beyond which a longer cell asks for no wider column
INLINE = {"em_open": "em", "strong_open": "strong", "link_open": "link"}


def document(text: str, frame: Frame) -> list[Part]:
    """The parts of the PDF, in order.

    Args:
        text: the summary's, with marks where tables and figures stand.
        frame: the frame, which has these.

    Raises:
        Explained: the text has a kind of block that pages do not support.
    """
    return [part for block in blocks(text) for part in _parts(block, frame)]


def _parts(block: Block, frame: Frame) -> list[Part]:
    """The parts of the PDF that a block becomes."""
    match block.kind:
        case "figures":
            return [
                _figure(*plate)
                for plate in frame.plates(block.name)
                if _is_printed(plate[0], frame)
            ]
        case "cards" | "plots":
            chosen = frame.cards_of if block.kind == "cards" else frame.plotted
            return [{"kind": block.kind, "cards": list(map(_printable, chosen(block.name)))}]
        case "table":
            return [_table(frame.tables[block.name])]
        case "list":
            items = [runs([token]) for token in block.inline]
            return [{"kind": "list", "ordered": block.tokens[0].tag == "ol", "items": items}]
        case "code":
            return [{"kind": "code", "text": printable(block.tokens[0].content)}]
    level = {"level": block.level} if block.kind == "heading" else {}
    return [{"kind": block.kind, **level, "runs": runs(block.inline)}]


def _is_printed(name: str, frame: Frame) -> bool:
    """Whether a figure is printed: of a paper with statements, if it shows the test of one."""
    tested = (card["figure"] for card in frame.cards if card["has_data"])
    return not frame.cards or name in {FOREST, REACH, *tested}


def _printable(value: Any) -> Any:
    """A value of JSON whose texts are printable."""
    match value:
        case str():
            return printable(value)
        case list() | tuple():
            return [_printable(part) for part in value]
        case dict():
            return {key: _printable(part) for key, part in value.items()}
    return value


def run(text: str, style: str = "", to: str = "") -> Run:
    """A text in one style."""
    return {"text": printable(text), "style": style, "to": to}


def runs(tokens: Iterable[Token]) -> list[Run]:
    """Text with its styles."""
    parts: list[Run] = []
    styles: list[tuple[str, str]] = []
    for child in (c for token in tokens for c in token.children or ()):
        if child.type in INLINE:
            styles.append((INLINE[child.type], str(child.attrs.get("href", ""))))
        elif child.nesting == -1:
            styles.pop()
        elif child.type == "code_inline":
            parts.append(run(child.content, "code"))
        elif text := " " if child.type == "softbreak" else child.content:
            parts.append(run(text, *(styles or [("", "")])[-1]))
    return parts


def _figure(name: str, figure: Figure) -> Part:
    caption = [run(f"{figure.title}.", "em"), run(f" {figure.caption}")]
    title = printable(figure.title)
    return {"kind": "figure", "path": f"figures/{name}.svg", "title": title, "caption": caption}


def _table(table: PageTable) -> Part:
    """A table: its cells, and which columns are numbers; a note if it is too wide or empty."""
    if not table.rows:
        return {"kind": "paragraph", "runs": [run("none")]}
    head, *rows = [[printable(cell) for cell in row] for row in (table.headings, *table.texts())]
    width = sum(
        max(*map(len, title.split()), min(CLIPPED, max(map(len, column))))
        for title, *column in zip(head, *rows, strict=True)
    )
    if width > LINE:
        note = run(f"The table “{table.title}” is too wide for print; summary.html has it.", "em")
        return {"kind": "paragraph", "runs": [note]}
    return {
        "kind": "table",
        "head": [breakable(cell) for cell in head],
        "rows": [[breakable(cell) for cell in row] for row in rows],
        "numbers": [table.is_numeric(i) for i in range(len(head))],
    }


def breakable(text: str) -> str:
    """A text whose long words may break, after punctuation or after every 9th letter."""
    return re.sub(r"([_/:=-](?=[^\s\d])|\w{9}(?=\w{4}))", "\\1\u200b", text)


def printable(text: str) -> str:
    """A text with [U+4E2D] for characters that are invisible or that the fonts lack."""
    return "".join(
        c if c == "\n" or _has_glyph(c) else f"[U+{ord(c):04X}]"
        for c in unicodedata.normalize("NFC", text)
    )


def _has_glyph(c: str) -> bool:
    is_covered = ord(c) < 0x0590 or 0x1E00 <= ord(c) < 0x2C00
    return is_covered and unicodedata.category(c)[0] != "C"


def pdf(layout_template: str, text: str, frame: Frame, svgs: Mapping[str, bytes]) -> bytes:
    """The PDF.

    Args:
        layout_template: in Typst; it reads ``document.json``.
        text: the summary's, with marks.
        svgs: figures by their names.

    Raises:
        Explained: the template is in error.
    """
    sources: Any = {  # typst's stubs do not know of several files
        "main.typ": layout_template.encode(),
        "document.json": json.dumps(document(text, frame)).encode(),
        **{f"figures/{name}.svg": svgs[name] for name in frame.figures},
    }
    try:
        return typst.compile(sources, ignore_system_fonts=True, format="pdf")
    except typst.TypstError as e:
        raise Explained(f"Typst cannot set the summary: {e.message}; {e.diagnostic}") from e
