"""Markdown: what is data stays text in words, cells and code, as pandoc reads it."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_recipes import HOSTILE, HOSTILE_TEX, text_table

from normscope.formats import decimals
from normscope.pages.markdown import Markdown, code, escape, escape_word, pipe_table
from normscope.pages.pandoc import PROGRAM, READER
from normscope.pages.table import Column, PageTable

INLINE = [
    *("**a**", "5 * 4 * 3", "``a ` b``", "<b>a</b>", "<!-- a -->", "<https://a.example>", "~~a~~"),
    *("___a___", "__init__", "a _b_, (_c_) -_d_-", "a__b__", "![a](https://a.example)", "[a][b]"),
    *("[a]\\(b)", "\\", "\\*a\\*", "a\\", "\\\\_a_", "&amp;", "&#65; &#x41;", "a & b &c", "R&D;"),
    *("[a]{.b}", "a{#b}", "{.a}", "`a`{=html}", "``", "a :: b", "`", "a|b"),
]
BLOCKS = ["# a", "- a", "+ a", "1. a", "12) a", "> a", "===", "---", "[a]: b", "-", "a\n# b"]
BLOCKS += ["::: {.card}", ":::", "::: card", "{#a}"]
TEXTS = [" ".join(text.split()) for text in (*INLINE, *BLOCKS, *HOSTILE, *HOSTILE_TEX)]
MARKUP = st.text(st.sampled_from("\\`*_<>~[](){}!&;#|-=:/\"'amp x19−"), min_size=1, max_size=16)
WORDS = MARKUP.map(lambda text: " ".join(text.split())).filter(bool)


def blocks(text: str) -> list[Any]:
    """The blocks that pandoc finds in a text."""
    command = [str(PROGRAM), f"--from={READER}", "--to=json"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return json.loads(done.stdout)["blocks"]


def words(node: Any) -> Iterator[str]:
    """The text in a part of a document; any markup but that of tables is an error."""
    match node:
        case list():
            for part in node:
                yield from words(part)
        case {"t": "Str", "c": text}:
            yield text
        case {"t": "Space" | "SoftBreak"}:
            yield " "
        case {"t": "Para" | "Plain", "c": inlines}:
            yield from words(inlines)
        case {"t": kind} if not kind.startswith(("Align", "Col", "Row")):
            pytest.fail(f"text became {kind}")


def cells(table: Any) -> list[list[str]]:
    """The texts of a table, its head first."""
    assert table["t"] == "Table"
    _, _, _, head, bodies, _ = table["c"]
    rows = [*head[1], *(row for body in bodies for row in body[3])]
    return [["".join(words(cell[4])) for cell in row[1]] for row in rows]


@pytest.mark.parametrize("place", ["{}", "a\n{}", "{}\nb", "\n{}\n"])
def test_a_word_is_text_wherever_it_stands(place):
    """Also where it begins a line, below one or above one."""
    found = blocks("\n\n".join(place.format(escape_word(text)) for text in TEXTS))
    assert [block["t"] for block in found] == ["Para"] * len(TEXTS)
    said = ["".join(words(block)) for block in found]
    assert said == [" ".join(place.format(text).split()) for text in TEXTS]


def test_any_cell_of_a_table_is_text():
    table = text_table("", ("name", "value"), [("-", text) for text in TEXTS])
    (found,) = blocks(pipe_table(table))
    assert cells(found) == [["name", "value"], *(["-", text] for text in TEXTS)]


@settings(max_examples=10, deadline=None)
@given(st.lists(WORDS, min_size=20, max_size=40))
def test_any_text_of_markup_is_text_as_a_word_and_in_a_cell(texts):
    *paragraphs, table = blocks(
        "\n\n".join([*map(escape_word, texts), pipe_table(text_table("", texts, [texts]))])
    )
    assert ["".join(words(block)) for block in paragraphs] == texts
    assert cells(table) == [texts, texts]


def test_code_is_the_text_itself():
    (paragraph,) = blocks(" x ".join(map(code, TEXTS)))
    said = [part["c"][1] for part in paragraph["c"] if part["t"] == "Code"]
    assert said == TEXTS


@pytest.mark.parametrize(
    "text",
    [
        *("r_mean x d", "center_scale", "hidden_states[-2]", "[−0.100, 0.250]", "[+0.1, +0.2] [1]"),
        *("sharpness x norm²", "a (b) c", "50% of $1 #1 > 0", "μ_σ2", ""),
    ],
)
def test_plain_text_is_not_escaped(text):
    """README and summary.md are also read by people."""
    assert escape(text) == text


def test_a_pipe_table_has_one_line_per_row_and_aligns_numbers():
    columns = (Column("a\nb"), Column("n", decimals(1)))
    assert pipe_table(PageTable("", columns, (("c\n\n| d | e |\r\n# f", 1.5),))).splitlines() == [
        "| a b | n |",
        "| --- | ---: |",
        r"| c \| d \| e \| # f | 1.5 |",
    ]
    assert pipe_table(text_table("", ["arm", "loss"])) == "none"


def test_markdown_is_not_escaped_again_and_numbers_have_minus_signs():
    assert escape_word(Markdown("*a* `b`")) == "*a* `b`"
    assert [escape_word(number) for number in (-0.5, 2.0, 20000)] == ["−0.5", "2", "20000"]
