"""LaTeX of the frame: escaped text, numbers for siunitx, tables that fit the line."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_recipes import HOSTILE_TEX, LATEX, frame, rows_of, text_table

from normscope.formats import INTEGER, PERCENT, SCIENTIFIC, SIGNIFICANT, decimals
from normscope.pages.latex import files, open_templates
from normscope.pages.table import Column, Number, PageTable, Quantity
from normscope.pages.tex import escaped, macro_name, value
from normscope.pages.textable import SHORT, columns_of, shape, tabular, widths

TEMPLATES = open_templates(LATEX)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_%&#${}", r"a\_\%\&\#\$\{\}"),
        ("a\\b", r"a\textbackslash{}b"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("<>|", r"\textless{}\textgreater{}\textbar{}"),
        (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ('say "so"', r"say \char34{}so\char34{}"),
        ("−0.5", "$-$0.5"),
        ("r -0.5, [-2], GPT-2, 1e-07", "r $-$0.5, [$-$2], GPT-2, 1e$-$07"),
        ("0–1", "0--1"),
        ("--flag", "-{}-flag"),
        ("é Å ş ł", r"\'{e} \r{A} \c{s} \l{}"),
        ("e\u0301", r"\'{e}"),
        ("αΩς", r"$\alpha$$\Omega$$\varsigma$"),
        ("x²", "x$^{2}$"),
        ("中🙂", "[U+4E2D][U+1F642]"),
        ("a\x07b\u200b", "a[U+0007]b[U+200B]"),
        ("a \n b", "a b"),
    ],
)
def test_text_is_what_tex_sets(text, shown):
    assert escaped(text) == shown


@given(st.text())
def test_any_text_becomes_ascii_without_new_commands(text):
    shown = escaped(text)
    assert shown.isascii()
    assert shown.isprintable()
    for command in re.findall(r"\\([A-Za-z]+)", shown):
        assert command not in {"input", "write", "end", "include", "openout", "read", "def"}
    bare = re.sub(r"\\[^A-Za-z]", "", shown)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"[%&#]", bare)


@pytest.mark.parametrize(
    ("number", "form", "shown"),
    [
        (1.8991, decimals(), r"\num{1.899}"),
        (6.75e-06, SCIENTIFIC, r"\num{6.75e-6}"),
        (44100, SCIENTIFIC, r"\num{4.41e4}"),
        (-0.5, decimals(1), r"\num{-0.5}"),
        (0.5, decimals(1, sign=True), r"\num[retain-explicit-plus]{+0.5}"),
        (0.95, PERCENT, r"\qty{95}{\percent}"),
        (1003854, INTEGER, r"\num{1003854}"),
        (1e-9, SIGNIFICANT, r"$<$\num{1e-6}"),
        (None, decimals(), "--"),
    ],
)
def test_values_are_siunitx_numbers(number, form, shown):
    assert value(Number(number, form)) == shown


@pytest.mark.parametrize(
    ("name", "macro"),
    [
        ("layernorm pre loss", r"\normscopeLayernormPreLoss"),
        ("manual_l2 pre loss low", r"\normscopeManualLtwoPreLossLow"),
    ],
)
def test_names_of_macros_have_only_letters(name, macro):
    assert macro_name(name) == macro


@pytest.mark.parametrize(
    ("cells", "form", "width"),
    [
        (["1.5", "{--}", "12.25"], "2.2", 5),
        (["-1", "2"], "-1.0", 3),
        (["+1.5", "2"], "+1.1", 4),
        (["{--}"], "1.0", 4),
    ],
)
def test_columns_of_numbers_reserve_the_digits_of_their_cells(cells, form, width):
    assert shape(cells) == (form, width)
    assert shape(["1.00", "3.15e-9"])[0] == "1.2e-1"


def test_a_table_has_a_head_and_rows():
    columns = (Column("arm"), Column("loss", decimals(1)), Column("range", decimals(0)))
    rows = (("a_x", 1.9, None), ("b", -2.0, Quantity(None, -1, 2)), ("", None, None))
    text = tabular(PageTable("", columns, rows), TEMPLATES)
    assert rows_of(text) == [
        r"{arm} & {loss} & {range} \\",
        r"a\_x & 1.9 & -- \\",
        r"b & -2.0 & [$-$1, 2] \\",
        r" & {--} & -- \\",
    ]
    assert "{tabular}{lS[table-format=-1.1," in text


def test_a_bound_in_a_column_of_numbers_is_text():
    table = PageTable("", (Column("p", SIGNIFICANT),), ((0.5,), (1e-9,)))
    assert rows_of(tabular(table, TEMPLATES))[1:] == [
        r"0.500 \\",
        r"{\textless{} 0.000001} \\",
    ]


@pytest.mark.parametrize("columns", [(), ("arm", "loss")])
def test_an_empty_table_says_none(columns):
    assert rows_of(tabular(text_table("", columns), TEMPLATES))[1:] == [r"none \\"]


def test_a_long_table_breaks_over_pages_and_repeats_its_head():
    text = tabular(
        PageTable("", (Column("n", INTEGER),), tuple((n,) for n in range(60))), TEMPLATES
    )
    assert text.count(r"\toprule") == 2
    assert r"\endlastfoot" in text
    assert len(re.findall(r"^\d+ \\\\$", text, re.M)) == 60


def test_a_first_cell_is_not_read_as_an_option_of_the_row_above():
    table = text_table("", "xy", [("[0pt]", "a"), ("*", "b")])
    assert rows_of(tabular(table, TEMPLATES))[1:] == [r"{}[0pt] & a \\", r"{}* & b \\"]


@given(st.lists(st.text("abc -_.0123456789W", max_size=80), min_size=1, max_size=6))
def test_columns_fill_the_line_and_no_more(cells):
    table = text_table("", [f"c{i}" for i in range(len(cells))], [cells])
    columns = columns_of(table, SHORT[-1])
    given_widths = widths(columns, 100)
    assert sum(given_widths) <= 100 + 1e-9
    if any(column.wraps for column in columns):
        assert sum(given_widths) == pytest.approx(100)
    for column, width in zip(columns, given_widths, strict=True):
        assert column.wraps or width == column.width


def test_files_of_a_hostile_frame_contain_no_command_of_its_texts():
    printed = frame(*HOSTILE_TEX)
    written = files(printed, LATEX)
    tables = {f"tables/{name}.tex" for name in ("tally", "main/loss", "main/empty")}
    assert set(written) == {"numbers.tex", "claims.tex", "example.tex", *tables}
    for text in written.values():
        assert text.isascii()
        assert not re.search(r"\\(?:input\{/|write18)", text)
    assert all(f"{{{name}}}" in written["example.tex"] for name in ("claims", "tables/main/loss"))
    assert r"\includegraphics[width=\textwidth]{figures/loss.pdf}" in written["example.tex"]
    assert rf"\caption[{{Title {escaped(HOSTILE_TEX[0])}}}]" in written["example.tex"]
    statements = re.sub(r"\\allowbreak\{\}|\\\\\{\}", "", written["claims.tex"])
    assert "[U+6A21]" in statements
    assert all(name.split()[0] in statements for name in printed.tables["ledger"].headings)
