"""The summary in print: its Markdown as data, which a Typst template lays out.

No text is ever part of a program: the template reads it from JSON.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import typst
from markdown_it import MarkdownIt
from markdown_it.token import Token

from normscope.errors import Explained
from normscope.paper.textable import SIZES, Layout, columns_of, layout, pieces

Run = dict[str, str]  # text, its style, and where it leads
Block = dict[str, Any]
PORTRAIT, LANDSCAPE = 483.0, 720.0  # pt, of a line
LONG = 110  # lines of a table in portrait, above which it is set in landscape
TALL = 40  # lines of a row, above which it may break over pages
TYPE = dict(zip((command for command, *_ in SIZES), (8.5, 8.0, 7.3), strict=True))  # pt
HEADING = "heading"
INLINE = {"em_open": "em", "strong_open": "strong", "link_open": "link"}


def document(markdown: str) -> list[Block]:
    """The blocks of a text in Markdown, in order.

    Raises:
        Explained: there is a kind of block that the print has no form for.
    """
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(markdown)
    found: list[Block] = []
    rest = iter(tokens)
    for token in rest:
        block = _block(token, rest)
        picture = found[-1] if found and found[-1]["kind"] == "figure" else None
        if picture and not picture["caption"] and block["kind"] == "paragraph":
            picture["caption"] = block["runs"]
        else:
            found.append(block)
    return _on_sheets(found)


def _on_sheets(blocks: Sequence[Block]) -> list[Block]:
    """Wide tables on sheets of their own, each with the heading that it stands under."""
    found: list[Block] = []
    for block in blocks:
        if not block.get("wide"):
            found.append(block)
            continue
        near = [i for i in range(max(0, len(found) - 2), len(found)) if found[i]["kind"] == HEADING]
        at = near[0] if near else len(found)
        while at and found[at - 1]["kind"] == HEADING:
            at -= 1
        found[at:] = [{"kind": "sheet", "blocks": [*found[at:], block]}]
    return found


def _block(token: Token, rest: Iterator[Token]) -> Block:
    """The block that begins here; its tokens are taken."""
    if token.type == "heading_open":
        return {"kind": HEADING, "level": int(token.tag[1:]), "runs": runs(_inside(token, rest))}
    if token.type == "paragraph_open":
        inside = _inside(token, rest)
        children = inside[0].children or []
        if [child.type for child in children] == ["image"]:
            path = str(children[0].attrs["src"])
            title = printable(children[0].content)
            return {"kind": "figure", "path": path, "title": title, "caption": []}
        return {"kind": "paragraph", "runs": runs(inside)}
    if token.type == "table_open":
        return _table(_inside(token, rest))
    if token.type in {"bullet_list_open", "ordered_list_open"}:
        inside = _inside(token, rest)
        items = [runs([t]) for t in inside if t.type == "inline"]
        return {"kind": "list", "ordered": token.tag == "ol", "items": items}
    if token.type in {"fence", "code_block"}:
        return {"kind": "code", "text": printable(token.content)}
    line = token.map[0] + 1 if token.map else "?"
    raise Explained(
        f"line {line} of the summary: the print has no form for {token.type}; write it as text,"
        " a heading, a list, a table or a figure"
    )


def _inside(opening: Token, rest: Iterator[Token]) -> list[Token]:
    """The tokens up to the one that closes it."""
    found = []
    closing = opening.type.replace("_open", "_close")
    for token in rest:
        if token.type == closing and token.level == opening.level:
            break
        found.append(token)
    return found


def runs(tokens: Sequence[Token]) -> list[Run]:
    """Text with its styles."""
    found: list[Run] = []
    styles: list[tuple[str, str]] = []
    for child in (c for token in tokens for c in token.children or ()):
        if child.type in INLINE:
            styles.append((INLINE[child.type], str(child.attrs.get("href", ""))))
        elif child.nesting == -1:
            styles.pop()
        else:
            text = child.content if child.type in {"text", "code_inline", "image"} else " "
            style, to = ("code", "") if child.type == "code_inline" else (styles or [("", "")])[-1]
            found.append({"text": printable(text), "style": style, "to": to})
    return found


def _table(tokens: Sequence[Token]) -> Block:
    """A table with the widths of its columns, the size of its type, and which way it lies."""
    rows: list[list[list[Run]]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(runs([token]))
    texts = [["".join(run["text"] for run in cell) for cell in row] for row in rows]
    columns = columns_of(pd.DataFrame(texts[1:], columns=texts[0]), grouped=False)

    def lines(of: Layout) -> list[int]:
        each = [of.lines(c, w) for c, w in zip(columns, of.widths, strict=True)]
        return [max(row) for row in zip(*each, strict=True)]

    upright = layout(columns, PORTRAIT)
    is_wide = upright.command == SIZES[-1][0] or sum(lines(upright)) > LONG
    of = layout(columns, LANDSCAPE) if is_wide else upright
    head, *body = ([_fitting(cell, of.limit) for cell in row] for row in rows)
    return {
        "kind": "table",
        "head": head,
        "rows": body,
        "wide": is_wide,
        "size": TYPE[of.command] - 0.5 * is_wide,
        "widths": [w + 2 * of.space for w in of.widths],
        "numbers": [c.number is not None for c in columns],
        "breaks": max(lines(of), default=0) > TALL,
    }


def _fitting(cell: Sequence[Run], limit: int) -> list[Run]:
    """Its text with places at which long words may break, and whole intervals."""
    return [
        run | {"text": " ".join("\u200b".join(word) for word in pieces(run["text"], limit))}
        if len(cell) == 1
        else run
        for run in cell
    ]


def printable(text: str) -> str:
    """What the embedded fonts have no letters for, and what is invisible, as [U+4E2D]."""
    return "".join(
        c if c == "\n" or (ord(c) < 0x2C00 and _is_set(c)) else f"[U+{ord(c):04X}]"
        for c in unicodedata.normalize("NFC", text)
    )


def _is_set(c: str) -> bool:
    return unicodedata.category(c)[0] != "C" and not 0x0590 <= ord(c) < 0x1E00


def pdf(template: str, markdown: str, figures: Mapping[str, bytes]) -> bytes:
    """The print.

    Args:
        template: in Typst; it reads ``document.json``.
        markdown: the summary.
        figures: SVGs by the paths that the summary names.

    Raises:
        Explained: a figure is missing, or the template is in error.
    """
    blocks = document(markdown)
    for block in blocks:
        if block["kind"] == "figure" and block["path"] not in figures:
            raise Explained(
                f"the summary shows {block['path']}, which is not among the figures that are"
                f" given ({', '.join(figures) or 'none'}); draw it first"
            )
    files: dict[str, bytes] = {
        "main.typ": template.encode(),
        "document.json": json.dumps(blocks).encode(),
    }
    try:
        sources: Any = {**files, **figures}  # typst's stubs do not know of several files
        return typst.compile(sources, ignore_system_fonts=True, format="pdf")
    except typst.TypstError as e:
        raise Explained(f"Typst cannot set the summary: {e.message}; {e.diagnostic}") from e
