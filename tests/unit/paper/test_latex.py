"""LaTeX of the frame: what TeX takes as text, numbers for siunitx, tables that fit the line."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from normscope.paper.layout import LINE, columns_of, layout, number_format
from page_recipes import HOSTILE_TEX, LATEX, frame, hostile_frame, rows_of, templates

from normscope.errors import Explained
from normscope.paper.latex import STATEMENTS, files, numbers, open_templates
from normscope.paper.table import PageTable
from normscope.paper.tex import escaped, macro_name, value
from normscope.paper.textable import tabular

TEMPLATES = open_templates(LATEX)


@pytest.mark.parametrize("special", "_%&#${}")
def test_what_tex_reads_as_markup_is_escaped(special):
    assert escaped(f"a{special}b") == f"a\\{special}b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\\b", r"a\textbackslash{}b"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("<>|", r"\textless{}\textgreater{}\textbar{}"),
        (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ('say "so"', r"say \char34{}so\char34{}"),
        ("−0.5", "$-$0.5"),
        ("r -0.5, [-2], GPT-2, 1e-07", "r $-$0.5, [$-$2], GPT-2, 1e$-$07"),
        ("0–1", "0--1"),
        ("--flag", "-{}-flag"),
        ("é Å ş", r"\'{e} \r{A} \c{s}"),
        ("e\u0301", r"\'{e}"),
        ("αΩΑ", r"$\alpha$$\Omega$$\mathrm{A}$"),
        ("x²", "x$^{2}$"),
        ("中🙂", "[U+4E2D][U+1F642]"),
        ("a\x07b\u200b", "a[U+0007]b[U+200B]"),
        ("a \n b", "a b"),
    ],
)
def test_text_is_what_tex_sets(text, shown):
    assert escaped(text) == shown


@given(st.text())
def test_any_text_becomes_ascii_whose_every_command_is_known(text):
    shown = escaped(text)
    assert shown.isascii()
    assert shown.isprintable()
    known = (
        r"text\w+|char|ss|ae|AE|oe|OE|o|O|l|L|i|S|copyright|ldots|circ|mathrm|mathit"
        r"|times|div|pm|cdot|le|ge|approx|ne|to|gets|infty|surd|var\w+|[A-Za-z]?[a-z]+"
    )
    for command in re.findall(r"\\([A-Za-z]+)", shown):
        assert re.fullmatch(known, command)
        assert command not in {"input", "write", "end", "include", "openout", "read"}
    bare = re.sub(r"\\[^A-Za-z]", "", shown)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"[%&#]", bare)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1.899", r"\num{1.899}"),
        ("6.75e-06", r"\num{6.75e-6}"),
        ("4.41e+04", r"\num{4.41e4}"),
        ("−0.5", r"\num{-0.5}"),
        ("+0.5", r"\num[retain-explicit-plus]{+0.5}"),
        ("95%", r"\qty{95}{\percent}"),
        ("1,003,854", r"\num{1003854}"),
        ("< 0.000001", r"$<$\num{1e-6}"),
        ("> 0.999", r"$>$\num{0.999}"),
        ("–", "--"),
        ("no data", "no data"),
        ("1,2", "1,2"),
    ],
)
def test_values_are_siunitx_numbers(text, shown):
    assert value(text) == shown


@pytest.mark.parametrize(
    ("name", "macro"),
    [
        ("layernorm pre loss", r"\normscopeLayernormPreLoss"),
        ("manual_l2 pre loss low", r"\normscopeManualLtwoPreLossLow"),
        ("claims", r"\normscopeClaims"),
        ("of 模 x", r"\normscopeOfUsixaTwoonexX"),
    ],
)
def test_names_of_macros_are_letters(name, macro):
    printed = macro_name(name)
    assert re.fullmatch(r"\\[A-Za-z]+", printed)
    if "模" not in name:
        assert printed == macro


def test_two_names_of_one_macro_are_named():
    with pytest.raises(Explained, match=r"'a b'.*'a_b'.*call one"):
        numbers({"a b": "1", "a_b": "2"})


def test_columns_of_numbers_are_numbers_of_siunitx():
    assert number_format(["1.5", "–", "12.25"]) == (
        "table-format=2.2,group-digits=integer,retain-explicit-plus"
    )
    assert str(number_format(["−1", "2"])).startswith("table-format=-1.0,")
    assert str(number_format(["+1.5", "2"])).startswith("table-format=+1.1,")
    assert str(number_format(["1.00", "3.15e-09"])).startswith("table-format=1.2e-1,")
    assert number_format(["–", "–"]) is None
    assert number_format(["1", "[1, 2]"]) is None


def of_columns(**columns: list[str]) -> PageTable:
    return PageTable("", tuple(columns), tuple(zip(*columns.values(), strict=True)))


def test_a_table_has_a_head_and_rows():
    table = of_columns(arm=["a_x", "b"], loss=["1.9", "−2.0"], range=["–", "[-1, 2]"])
    text = tabular(table, TEMPLATES)
    assert rows_of(text) == [
        r"{arm} & {loss} & {range} \\",
        r"a\_x & 1.9 & -- \\",
        r"b & -2.0 & [$-$1, 2] \\",
    ]
    assert "{tabular}{lS[table-format=-1.1," in text


@pytest.mark.parametrize("columns", [(), ("arm", "loss")])
def test_an_empty_table_says_none(columns):
    assert rows_of(tabular(PageTable("", columns, ()), TEMPLATES))[1:] == [r"none \\"]


def test_a_long_table_breaks_over_pages_and_repeats_its_head():
    text = tabular(of_columns(n=[str(n) for n in range(60)]), TEMPLATES)
    assert text.count(r"\toprule") == 2
    assert r"\endlastfoot" in text
    assert len(re.findall(r"^\d+ \\\\$", text, re.M)) == 60


def test_neighbours_that_end_alike_stand_under_one_head():
    table = PageTable("", ("x, published", "y, published", "z"), (("1", "2", "3"),))
    text = tabular(table, TEMPLATES)
    assert r"\multicolumn{2}{c}{published}" in text
    assert r"\cmidrule(lr){1-2}" in text
    assert [c.name for c in columns_of(table)] == ["x", "y", "z"]


def test_a_cell_that_begins_with_a_bracket_is_no_option_of_the_row_before():
    rows = rows_of(tabular(of_columns(x=["[0pt]", "*"], y=["a", "b"]), TEMPLATES))
    assert rows[1:] == [r"{}[0pt] & a \\", r"{}* & b \\"]


@given(st.lists(st.text("abc -_.0123456789W", max_size=80), min_size=1, max_size=9))
def test_columns_fit_the_line(cells):
    columns = columns_of(PageTable("", tuple(f"c{i}" for i in range(len(cells))), (tuple(cells),)))
    fitted = layout(columns)
    assert sum(fitted.widths) + 2 * fitted.space * len(columns) <= LINE + 0.1


def test_files_of_a_hostile_frame_hold_no_command_of_its_texts():
    written = files(hostile_frame(), LATEX)
    assert set(written) == {
        *("numbers.tex", "claims.tex", "example.tex"),
        *(f"tables/{name}.tex" for name in ("tally", "main/loss", "main/empty", "recall/a_b")),
    }
    for text in written.values():
        assert text.isascii()
        assert not re.search(r"\\(?:input\{/|write18)", text)
    assert all(f"{{{name}}}" in written["example.tex"] for name in ("claims", "tables/main/loss"))
    assert r"\includegraphics[width=\textwidth]{figures/loss.pdf}" in written["example.tex"]
    assert rf"\caption[{{{escaped(HOSTILE_TEX[0])}}}]" in written["example.tex"]
    statements = re.sub(r"\\allowbreak\{\}|\\\\\{\}", "", written["claims.tex"])
    assert "[U+6A21]" in statements
    assert statements.count(r"\addlinespace") == len(HOSTILE_TEX) - 1
    assert all(name.split()[0] in statements for name in STATEMENTS)


def test_a_name_that_is_none_of_a_file_is_refused():
    with pytest.raises(Explained, match=r"cannot be called 'a\}b'"):
        files(frame(names=("a}b",)), LATEX)


def test_a_sentence_needs_its_numbers():
    printed = hostile_frame()
    assert "Of \\normscopeClaims{}" not in files(printed, LATEX)["example.tex"]
    of_claims = (f"claims {word}" for word in "exploratory holds fails undecided tests".split())
    names = ["claims", *of_claims, "alpha"]
    shown = files(replace(printed, numbers=dict.fromkeys(names, "2")), LATEX)["example.tex"]
    assert r"Of \normscopeClaims{} statements, \normscopeClaimsHolds{} hold" in shown


def test_a_number_that_a_template_asks_for_in_vain_is_named(tmp_path):
    templates(tmp_path)
    (tmp_path / "table.tex").write_text((LATEX / "table.tex").read_text())
    (tmp_path / "example.tex").write_text('x\n<< number("layernorm loss") >>')
    with pytest.raises(Explained, match=r"example\.tex, line 2: .*did you mean layernorm pre loss"):
        files(frame(), tmp_path)
