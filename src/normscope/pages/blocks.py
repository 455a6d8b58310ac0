"""The summary's text as blocks, from which the page and the PDF are made.

The text is Markdown. Marks in it stand for tables and figures of the frame.
"""

from collections.abc import Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from normscope.errors import Explained
from normscope.pages.figures import FOREST
from normscope.pages.markdown import CARDS, FIGURES, MARK, MARKED, PLOTS

KINDS = {
    "heading": "heading",
    "paragraph": "paragraph",
    "bullet_list": "list",
    "ordered_list": "list",
    "fence": "code",
    "code_block": "code",
}
# images would be loaded from elsewhere; tables come from the frame
PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


class Block(NamedTuple):
    """A top-level part of the text.

    Args:
        kind: ``heading``, ``paragraph``, ``list``, ``code``, ``table``, ``figures``, ``cards``
            or ``plots``.
        tokens: its Markdown, as parsed.
        name: of the table, of the figures' mark, or of the document with these cards; the keys of
            the statements with these plots.
    """

    kind: str
    tokens: Sequence[Token]
    name: str = ""

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
        Explained: the text has a kind of block that pages do not support, or a mark within other
            text.
    """
    return list(map(_block, SyntaxTreeNode(PARSER.parse(text)).children))


def _block(node: SyntaxTreeNode) -> Block:
    if node.type not in KINDS:
        raise Explained(
            f"line {node.map[0] + 1 if node.map else '?'} of the summary: no page has a form for"
            f" {node.type}; write it as text, a heading or a list, or hand it over as a table"
        )
    block = Block(KINDS[node.type], node.to_tokens())
    marks = [token.content.strip() for token in block.inline if MARK in token.content]
    if not marks:
        return block
    mark = MARKED.fullmatch(marks[0])
    if mark is None or block.kind != "paragraph":
        raise Explained(f"a table must be a separate paragraph in: {marks[0].replace(MARK, '|')}")
    if mark[1] in (FIGURES, FOREST):
        return Block("figures", block.tokens, mark[1])
    for kind, prefix in (("cards", CARDS), ("plots", PLOTS)):
        if mark[1].startswith(prefix):
            return Block(kind, block.tokens, mark[1].removeprefix(prefix))
    return Block("table", block.tokens, mark[1])
