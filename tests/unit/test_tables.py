"""Tables: CSV of fixed bytes, Markdown, numbers for people."""

import math
from typing import get_args

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from normscope.io.csvfile import write_csv
from normscope.nn.arms import ARMS
from normscope.nn.recipe import Placement
from normscope.paper.words import (
    Section,
    escaped,
    interval,
    markdown,
    number,
    placed,
    reference,
    run_key,
    significant_or_tiny,
)


def test_csv_reads_back_with_nine_digits_and_unix_lines(tmp_path):
    table = pd.DataFrame({"arm": ["a", "b,c"], "loss": [1 / 3, math.nan], "n": [1, 2]})
    write_csv(tmp_path / "t.csv", table)
    raw = (tmp_path / "t.csv").read_bytes()
    assert raw == b'arm,loss,n\na,0.333333333,1\n"b,c",,2\n'
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.csv"), table, rtol=1e-9)


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("placement", get_args(Placement))
def test_run_key_takes_a_name_apart(arm, placement):
    key = run_key(f"{arm}-{placement}-1337")
    assert key == {"arm": arm, "placement": placement, "seed": 1337}


@given(st.floats(-100, 100), st.integers(0, 6))
def test_numbers_read_back(value, digits):
    assert float(number(value, digits).replace("−", "-")) == pytest.approx(
        value, abs=0.5 * 10**-digits * (1 + 1e-9)
    )


@pytest.mark.parametrize(
    ("value", "signed", "plain"),
    [(0.1234, "+0.123", "0.123"), (-1.5, "−1.500", "−1.500"), (math.nan, "–", "–")],
)
def test_numbers_have_a_minus_sign_and_a_dash_for_none(value, signed, plain):
    assert number(value, sign=True) == signed
    assert number(value) == plain


def test_intervals_have_brackets_and_a_dash_for_none():
    assert interval(-0.1, 0.25) == "[−0.100, 0.250]"
    assert interval(-0.1, 0.25, sign=True) == "[−0.100, +0.250]"
    assert interval(math.nan, math.nan) == "–"


def test_markdown_is_a_pipe_table():
    table = pd.DataFrame({"arm": ["a", "b"], "n": [1, 2]})
    assert markdown(table).splitlines() == [
        "| arm | n |",
        "| --- | --- |",
        "| a | 1 |",
        "| b | 2 |",
    ]


# what the project's own reader of Markdown takes for markup
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def read(text: str) -> str:
    """What a reader sees; an error where any of it is more than text."""
    *_, found = (token for token in READER.parse(text) if token.type == "inline")
    kinds = {child.type for child in found.children or []}
    assert kinds <= {"text"}, (text, kinds)
    return "".join(child.content for child in found.children or [])


HOSTILE = [
    "*a*",
    "**a**",
    "+0.500 [+0.250, +0.750]*",
    "5 * 4 * 3",
    "`a`",
    "``a ` b``",
    "<b>a</b>",
    "<script>alert(1)</script>",
    "<!-- a -->",
    "<https://a.example>",
    "< 0.000001",
    "~~a~~",
    "~a~",
    "_a_",
    "__a__",
    "___a___",
    "__init__",
    "a _b_, (_c_) -_d_-",
    "a__b__",
    "_ _",
    "[a](https://a.example)",
    "![a](https://a.example)",
    "[a][b]",
    "[a]\\(b)",
    "\\",
    "\\*a\\*",
    "a\\",
    "\\\\_a_",
    "C:\\new",
    "&amp;",
    "&#65; &#x41;",
    "a & b &c",
    "R&D;",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_text_is_read_as_it_stands(text):
    assert read(escaped(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "r_mean x d",
        "center_scale",
        "hidden_states[-2]",
        "[−0.100, 0.250]",
        "[+0.100, +0.250] [1, 2]",
        "sharpness x norm²",
        "a (b) c",
        "50% of $1 #1 > 0",
        "μ_σ2",
        "",
    ],
)
def test_what_is_no_markup_is_not_escaped(text):
    """It is read by people too, in the file."""
    assert escaped(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a*b", r"a\*b"),
        ("`", r"\`"),
        ("~", r"\~"),
        ("a < b", r"a \< b"),
        ("\\", r"\\"),
        ("_a", r"\_a"),
        ("a_", r"a\_"),
        ("[a](b)", r"[a]\(b)"),
        ("[a][b]", r"[a]\[b]"),
        ("&lt;", r"\&lt;"),
    ],
)
def test_markup_is_escaped_with_a_backslash(text, shown):
    assert escaped(text) == shown


MARKUP = st.text(st.sampled_from("\\`*_<>~[]()!&;#|-=:/\"'amp x19−"), min_size=1, max_size=16)


@example("__a__")
@given(MARKUP.map(lambda text: " ".join(text.split())).filter(bool))
def test_any_cell_is_read_as_it_stands(text):
    """In a table too, whose columns are bars."""
    table = markdown(pd.DataFrame({"name": ["-"], "value": [text], text + "1": ["-"]}))
    assert len(table.splitlines()) == 3
    cells = [token for token in READER.parse(table) if token.type == "inline"]
    seen = [[(c.type, c.content) for c in cell.children or []] for cell in cells]
    assert all(kind == "text" for cell in seen for kind, _ in cell), seen
    words = ["".join(content for _, content in cell) for cell in seen]
    assert words == ["name", "value", text + "1", "-", text, "-"]


def test_a_cell_of_many_lines_is_one_row():
    table = pd.DataFrame({"a\nb": ["c\n\n| d | e |\r\n# f"]})
    assert markdown(table).splitlines() == ["| a b |", "| --- |", r"| c \| d \| e \| # f |"]


def test_a_table_without_a_row_is_none():
    for columns in ([], ["arm", "loss"]):
        assert markdown(pd.DataFrame([], columns=columns)) == "none"


ONE, OTHER = pd.DataFrame({"arm": ["a"]}), pd.DataFrame({"n": [1]})
A, N = "| arm |\n| --- |\n| a |", "| n |\n| --- |\n| 1 |"


def test_tables_stand_where_a_text_refers_to_them():
    tables = {"of_arms": ONE, "n2": OTHER, "none": ONE[:0]}
    text = f"# A\n\n{reference('of_arms')}\n\nB: {reference('n2')}{reference('none')}"
    assert placed(text, tables) == f"# A\n\n{A}\n\nB: {N}none"
    twice = reference("n2") * 2
    assert placed(twice, tables) == N * 2
    for plain in ("", "no table", "[table n2]", "[[n2]]", "[[table]]", "[[table n2]", "{of_arms}"):
        assert placed(plain, tables) == plain


def test_a_table_that_is_not_there_is_an_error():
    with pytest.raises(KeyError, match="costs"):
        placed(reference("costs"), {"of_arms": ONE})


def test_what_a_cell_holds_is_no_reference():
    """A table is not looked at again, nor is its text read as a pattern's."""
    tables = {"one": pd.DataFrame({"x": [reference("other"), r"\1 \g<0>"]}), "other": OTHER}
    text = placed(reference("one"), tables)
    assert text.splitlines()[2:] == ["| [[table other]] |", r"| \\1 \\g\<0> |"]


def test_a_section_is_rendered_with_its_tables_and_its_numbers_as_they_are():
    texts: dict[str, object] = {"words": f"See {reference('one')}", "seeds": 6, "plain": "a_b *"}
    section = Section(texts, {"one": ONE, "unused": OTHER})
    assert section.rendered() == {"words": f"See {A}", "seeds": 6, "plain": "a_b *"}
    assert section.texts["words"] == "See [[table one]]"
    with pytest.raises(KeyError, match="one"):
        Section(texts, {}).rendered()


@pytest.mark.parametrize(
    ("value", "reads"),
    [
        (0.0, "0"),
        (math.nan, "–"),
        (1.0, "1.00"),
        (-2.5, "−2.50"),
        (1e-4, "0.000100"),
        (9.99e-5, "9.99e-05"),
        (9999.0, "9,999"),
        (1e4, "1.00e+04"),
        (5e-324, "4.94e-324"),
    ],
)
def test_numbers_that_would_be_zeros_or_many_digits_are_powers_of_ten(value, reads):
    assert significant_or_tiny(value) == reads
