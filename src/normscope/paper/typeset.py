"""The summary in print: its blocks and tables as data, which a Typst template lays out.

No text is ever part of a program: the template reads it from JSON.
"""

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typst
from markdown_it.token import Token

from normscope.errors import Explained
from normscope.paper.blocks import Block, blocks
from normscope.paper.frame import Figure, Frame
from normscope.paper.layout import SIZES, Layout, columns_of, layout, pieces
from normscope.paper.table import PageTable

Run = dict[str, str]  # text, its style, and where it leads
Part = dict[str, Any]
PORTRAIT, LANDSCAPE = 483.0, 720.0  # pt, of a line
LONG = 110  # lines of a table in portrait, above which it is set in landscape
TALL = 40  # lines of a row, above which it may break over pages
TYPE = dict(zip((command for command, *_ in SIZES), (8.5, 8.0, 7.3), strict=True))  # pt
HEADING = "heading"
INLINE = {"em_open": "em", "strong_open": "strong", "link_open": "link"}


def document(text: str, frame: Frame) -> list[Part]:
    """The parts of the print, in order.

    Args:
        text: the summary's, with marks where tables and figures stand.
        frame: which has these.

    Raises:
        Explained: the text has a block that no page has a form for.
    """
    return _on_sheets([part for block in blocks(text) for part in _parts(block, frame)])


def _parts(block: Block, frame: Frame) -> list[Part]:
    """What a block is in print."""
    match block.kind:
        case "figures":
            return [_figure(name, figure) for name, figure in frame.figures.items()]
        case "table":
            part = _table(frame.tables[block.table])
        case "heading":
            part = {"kind": HEADING, "level": block.level, "runs": runs(block.inline)}
        case "list":
            items = [runs([token]) for token in block.inline]
            part = {"kind": "list", "ordered": block.tokens[0].tag == "ol", "items": items}
        case "code":
            part = {"kind": "code", "text": printable(block.tokens[0].content)}
        case "paragraph":
            part = {"kind": "paragraph", "runs": runs(block.inline)}
    return [part]


def _on_sheets(parts: Sequence[Part]) -> list[Part]:
    """Wide tables on sheets of their own, each with the heading that it stands under."""
    sheets: list[Part] = []
    for part in parts:
        if not part.get("wide"):
            sheets.append(part)
            continue
        last = range(max(0, len(sheets) - 2), len(sheets))
        near = [i for i in last if sheets[i]["kind"] == HEADING]
        at = near[0] if near else len(sheets)
        while at and sheets[at - 1]["kind"] == HEADING:
            at -= 1
        sheets[at:] = [{"kind": "sheet", "blocks": [*sheets[at:], part]}]
    return sheets


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
        else:
            parts.append(run(child.content or " ", *(styles or [("", "")])[-1]))
    return parts


def _figure(name: str, figure: Figure) -> Part:
    caption = [run(f"{figure.title}.", "em"), run(f" {figure.caption}")]
    title = printable(figure.title)
    return {"kind": "figure", "path": _path(name), "title": title, "caption": caption}


def _path(name: str) -> str:
    return f"figures/{name}.svg"


def _table(table: PageTable) -> Part:
    """A table with the widths of its columns, the size of its type, and which way it lies."""
    if not table.rows:
        return {"kind": "paragraph", "runs": [run("none")]}
    texts = [tuple(map(printable, row)) for row in (table.columns, *table.rows)]
    shown = PageTable(table.title, texts[0], tuple(texts[1:]))
    columns = columns_of(shown, grouped=False)

    def lines(setting: Layout) -> list[int]:
        each = [setting.lines(c, w) for c, w in zip(columns, setting.widths, strict=True)]
        return [max(row) for row in zip(*each, strict=True)]

    upright = layout(columns, PORTRAIT)
    is_wide = upright.command == SIZES[-1][0] or sum(lines(upright)) > LONG
    chosen = layout(columns, LANDSCAPE) if is_wide else upright
    head, *body = ([_fitting(cell, chosen.limit) for cell in row] for row in texts)
    return {
        "kind": "table",
        "head": head,
        "rows": body,
        "wide": is_wide,
        "size": TYPE[chosen.command] - 0.5 * is_wide,
        "widths": [w + 2 * chosen.space for w in chosen.widths],
        "numbers": [c.number is not None for c in columns],
        "breaks": max(lines(chosen), default=0) > TALL,
    }


def _fitting(cell: str, limit: int) -> list[Run]:
    """A cell with places at which long words may break, and whole intervals."""
    text = " ".join("\u200b".join(word) for word in pieces(cell, limit))
    return [{"text": text, "style": "", "to": ""}]


def printable(text: str) -> str:
    """What the embedded fonts have no letters for, and what is invisible, as [U+4E2D]."""
    return "".join(
        c if c == "\n" or (ord(c) < 0x2C00 and _is_set(c)) else f"[U+{ord(c):04X}]"
        for c in unicodedata.normalize("NFC", text)
    )


def _is_set(c: str) -> bool:
    return unicodedata.category(c)[0] != "C" and not 0x0590 <= ord(c) < 0x1E00


def pdf(layout_template: str, text: str, frame: Frame, svgs: Mapping[str, bytes]) -> bytes:
    """The print.

    Args:
        layout_template: in Typst; it reads ``document.json``.
        text: the summary's, with marks.
        svgs: figures by their names.

    Raises:
        Explained: a figure is missing, or the template is in error.
    """
    if missing := [name for name in frame.figures if name not in svgs]:
        raise Explained(f"figures without an svg: {', '.join(missing)}; make them: rule figures")
    sources: Any = {  # typst's stubs do not know of several files
        "main.typ": layout_template.encode(),
        "document.json": json.dumps(document(text, frame)).encode(),
        **{_path(name): svgs[name] for name in frame.figures},
    }
    try:
        return typst.compile(sources, ignore_system_fonts=True, format="pdf")
    except typst.TypstError as e:
        raise Explained(f"Typst cannot set the summary: {e.message}; {e.diagnostic}") from e
