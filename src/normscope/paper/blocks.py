"""The summary's text as blocks, from which the page and the print are made.

The text is Markdown. Marks in it stand for tables and figures of the frame.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from normscope.errors import Explained
from normscope.paper.markdown import FIGURES, MARK, MARKED

Kind = Literal["heading", "paragraph", "list", "code", "table", "figures"]
KINDS: dict[str, Kind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "fence": "code",
    "code_block": "code",
}
# images would be loaded from elsewhere; tables come from the frame
PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


class Block(NamedTuple):
    """A top-level part of the text.

    Args:
        kind: its kind.
        tokens: its Markdown, as parsed.
        table: name of the table, in a block of the kind ``table``.
    """

    kind: Kind
    tokens: Sequence[Token]
    table: str = ""

    @property
    def level(self) -> int:
        """Level of a heading."""
        return int(self.tokens[0].tag[1:])

    @property
    def inline(self) -> list[Token]:
        """Tokens with words: one for a heading or paragraph, one for each item of a list."""
        return [token for token in self.tokens if token.type == "inline"]

    @property
    def words(self) -> str:
        """Its text without styles."""
        children = (child for token in self.inline for child in token.children or ())
        return "".join(child.content or " " for child in children)


def blocks(text: str) -> list[Block]:
    """The blocks of a text in Markdown, in order.

    Raises:
        Explained: the text has a kind of block that pages do not support, a mark within other
            text, or the same table twice.
    """
    parts = [_block(tokens) for tokens in _apart(PARSER.parse(text))]
    names = [block.table or FIGURES for block in parts if block.kind in ("table", "figures")]
    for name in names:
        if names.count(name) > 1:
            raise Explained(f"{name} stands twice in the summary")
    return parts


def _apart(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens of each block."""
    block: list[Token] = []
    depth = 0
    for token in tokens:
        block.append(token)
        depth += token.nesting
        if depth == 0:
            yield block
            block = []


def _block(tokens: list[Token]) -> Block:
    first = tokens[0]
    if first.type not in KINDS:
        line = first.map[0] + 1 if first.map else "?"
        raise Explained(
            f"line {line} of the summary: no page has a form for {first.type}; write it as text, a"
            " heading or a list, or hand it over as a table"
        )
    block = Block(KINDS[first.type], tokens)
    for token in block.inline:
        if MARK in token.content:
            return _mark(block, token.content.strip())
    return block


def _mark(block: Block, content: str) -> Block:
    """The block for a mark."""
    mark = MARKED.fullmatch(content)
    if mark is None or block.kind != "paragraph":
        shown = content.replace(MARK, "|")
        raise Explained(f"a table must be a separate paragraph in: {shown}")
    if mark[1] == FIGURES:
        return Block("figures", block.tokens)
    return Block("table", block.tokens, mark[1])
