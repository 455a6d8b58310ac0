"""Markdown: text stays text in cells and in words, and tables and figures replace their marks."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from page_recipes import text_table

from normscope.pages.frame import Figure, Frame
from normscope.pages.markdown import (
    FIGURES,
    MARK,
    Markdown,
    escaped,
    escaped_word,
    pipe_table,
    reference,
    summary,
)

# reads as markup all that the page's parser does, and more
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
INLINE = [
    *("**a**", "5 * 4 * 3", "``a ` b``", "<b>a</b>", "<!-- a -->", "<https://a.example>", "~~a~~"),
    *("___a___", "__init__", "a _b_, (_c_) -_d_-", "a__b__", "![a](https://a.example)", "[a][b]"),
    *("[a]\\(b)", "\\", "\\*a\\*", "a\\", "\\\\_a_", "&amp;", "&#65; &#x41;", "a & b &c", "R&D;"),
]
BLOCKS = ["# a", "- a", "+ a", "1. a", "12) a", "> a", "===", "---", "[a]: b", "-", "a\n# b"]


@pytest.mark.parametrize("text", [*INLINE, *BLOCKS])
def test_a_word_is_text_wherever_it_stands(text):
    """Also where it begins a line, below one or above one."""
    line = escaped_word(text)
    for template in ("{}", "a\n{}", "{}\nb", "a\n\n{}\n\nb"):
        tokens = READER.parse(template.format(line))
        assert {t.type for t in tokens} == {"paragraph_open", "inline", "paragraph_close"}
        assert {c.type for t in tokens for c in t.children or []} <= {"text", "softbreak"}
        words = [c.content for t in tokens for c in t.children or []]
        assert " ".join(text.split()) in "".join(words)


@pytest.mark.parametrize(
    "text",
    [
        *("r_mean x d", "center_scale", "hidden_states[-2]", "[−0.100, 0.250]", "[+0.1, +0.2] [1]"),
        *("sharpness x norm²", "a (b) c", "50% of $1 #1 > 0", "μ_σ2", ""),
    ],
)
def test_plain_text_is_not_escaped(text):
    """The file is also read by people."""
    assert escaped(text) == text


MARKUP = st.text(st.sampled_from("\\`*_<>~[]()!&;#|-=:/\"'amp x19−"), min_size=1, max_size=16)


@example("__a__")
@given(MARKUP.map(lambda text: " ".join(text.split())).filter(bool))
def test_any_cell_of_a_table_is_text(text):
    columns = ("name", "value", text + "1")
    table = pipe_table(text_table("", columns, [("-", text, "-")]))
    assert len(table.splitlines()) == 3
    cells = [token.children or [] for token in READER.parse(table) if token.type == "inline"]
    assert all(child.type == "text" for cell in cells for child in cell)
    words = ["".join(child.content for child in cell) for cell in cells]
    assert words == ["name", "value", text + "1", "-", text, "-"]


def test_a_pipe_table_has_one_line_per_row():
    table = text_table("", ["a\nb", "n"], [("c\n\n| d | e |\r\n# f", "1")])
    assert pipe_table(table).splitlines() == [
        "| a b | n |",
        "| --- | --- |",
        r"| c \| d \| e \| # f | 1 |",
    ]
    assert pipe_table(text_table("", ["arm", "loss"])) == "none"


def test_markdown_is_not_escaped_again_and_words_contain_no_marks():
    assert escaped_word(Markdown("*a* `b`")) == "*a* `b`"
    assert escaped_word(f"{MARK}ledger{MARK}") == "\ufffdledger\ufffd"
    assert [escaped_word(number) for number in (-0.5, 2.0, 20000)] == ["−0.5", "2", "20000"]


def test_tables_and_figures_replace_their_marks_once():
    cell = reference("b")
    tables = {n: text_table(n, "x", [[cell]]) for n in ("a", "b")}
    figures = {"z": Figure("T *", f"C {cell} <"), "y": Figure("U", "D")}
    text = f"one {reference('a')} two {reference(FIGURES)} three"
    assert summary(text, Frame({}, {}, tables, figures, {})).splitlines() == [
        "one | x |",
        "| --- |",
        f"| {cell} | two ![T \\*](figures/z.svg)",
        "",
        f"*T \\*.* C {cell} \\<",
        "",
        "![U](figures/y.svg)",
        "",
        "*U.* D three",
    ]
