"""The summary's text, block by block: what the page and the print both walk.

Text alone is Markdown. Tables and figures are marks in it, and are taken from the frame.
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
# an image in a text would be loaded from elsewhere; what is a table stands in the frame
PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


class Block(NamedTuple):
    """A part of the text that lies in no other.

    Args:
        kind: what it is.
        tokens: its Markdown, as the parser has it.
        table: name of the table that stands here.
    """

    kind: Kind
    tokens: Sequence[Token]
    table: str = ""

    @property
    def level(self) -> int:
        """Of a heading."""
        return int(self.tokens[0].tag[1:])

    @property
    def inline(self) -> list[Token]:
        """What holds its words: one of a heading or paragraph, one an item of a list."""
        return [token for token in self.tokens if token.type == "inline"]

    @property
    def words(self) -> str:
        """Without styles."""
        children = (child for token in self.inline for child in token.children or ())
        return "".join(child.content or " " for child in children)


def blocks(text: str) -> list[Block]:
    """The blocks of a text in Markdown, in order.

    Raises:
        Explained: a kind of block that no page has a form for, a mark within other text, or the
            same table twice.
    """
    parts = [_block(tokens) for tokens in _apart(PARSER.parse(text))]
    names = [block.table or FIGURES for block in parts if block.kind in ("table", "figures")]
    for name in names:
        if names.count(name) > 1:
            raise Explained(f"{name} stands twice in the summary")
    return parts


def _apart(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens of every block."""
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
    """What a mark stands for."""
    mark = MARKED.fullmatch(content)
    if mark is None or block.kind != "paragraph":
        shown = content.replace(MARK, "|")
        raise Explained(f"a table needs a paragraph of its own in: {shown}")
    if mark[1] == FIGURES:
        return Block("figures", block.tokens)
    return Block("table", block.tokens, mark[1])
