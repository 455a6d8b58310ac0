"""LaTeX and PDF: every number, hostile text as text, the same bytes twice."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from page_recipes import (
    HOSTILE,
    HOSTILE_TEX,
    REPORT,
    SVG,
    frame,
    template_text,
    templates,
    text_table,
)
from processes import need

from normscope.errors import Explained
from normscope.formats import INTEGER, PERCENT, SCIENTIFIC, SIGNIFICANT, decimals
from normscope.pages.frame import Frame
from normscope.pages.latex import latex, latex_files, macro_name
from normscope.pages.markdown import titled_table
from normscope.pages.pandoc import pdf
from normscope.pages.table import Column, Number, PageTable, Quantity

MISSING = Number(None, INTEGER)
FIGURES = dict.fromkeys(frame().figures, SVG)


def text_of(data: bytes, place: Path) -> str:
    """The text of a PDF without spaces."""
    need(shutil.which("pdftotext"), "pdftotext is not installed")
    (place / "x.pdf").write_bytes(data)
    command = ["pdftotext", "-raw", str(place / "x.pdf"), "-"]
    extracted = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.sub(r"[\s\u200b]+", "", extracted)


def files(tables: dict[str, PageTable], number: Number = MISSING) -> dict[str, str]:
    return latex_files(Frame({}, {}, tables, {}, {"loss": number}), REPORT)


@pytest.mark.parametrize(
    ("number", "form", "shown"),
    [
        (1.8991, decimals(), "1.899"),
        (44100, SCIENTIFIC, "4.41e+04"),
        (-0.5, decimals(1), "$-$0.5"),
        (0.5, decimals(1, sign=True), "+0.5"),
        (0.95, PERCENT, r"95\%"),
        (1003854, INTEGER, "1,003,854"),
        (1e-9, SIGNIFICANT, r"\textless{} 0.000001"),
        (None, decimals(), "--"),
    ],
)
def test_macros_are_numbers_as_pages_show_them(number, form, shown):
    written = files({}, Number(number, form))["numbers.tex"]
    assert written.splitlines()[1:] == [rf"\newcommand{{\normscopeLoss}}{{{shown}}}"]


@pytest.mark.parametrize(
    ("name", "macro"),
    [
        ("layernorm pre loss", r"\normscopeLayernormPreLoss"),
        ("manual_l2 pre loss low", r"\normscopeManualLtwoPreLossLow"),
    ],
)
def test_names_of_macros_have_only_letters(name, macro):
    assert macro_name(name) == macro


def test_a_table_in_latex_has_a_title_a_head_and_rows():
    columns = (Column("arm"), Column("loss", decimals(1)), Column("range", decimals(0)))
    rows = (("a_x", 1.9, None), ("b", -2.0, Quantity(None, -1, 2)), ("", None, None))
    tables = {"main.runs": PageTable("Losses & more", columns, rows), "claims": text_table("", "x")}
    written = files(tables)
    assert set(written) == {"numbers.tex", "example.tex", "tables/main/runs.tex"}
    text = written["tables/main/runs.tex"]
    assert r"\begin{longtable}[]{@{}lrl@{}}" in text
    assert r"\caption{Losses \& more}\label{table-main-runs}" in text
    assert re.findall(r"^.*& .* \\\\$", text, re.M)[-4:] == [
        r"arm & loss & range \\",
        r"a\_x & 1.9 & -- \\",
        r"b & $-$2.0 & {[}$-$1, 2{]} \\",
        r"& -- & -- \\",
    ]


def test_columns_of_a_wide_table_in_latex_share_the_line():
    text = latex(titled_table("a", text_table("T", "xy", [["word", "word " * 99]])), REPORT)
    one, other = map(float, re.findall(r"\\real\{([\d.]+)\}", text))
    assert one + other == pytest.approx(1, abs=0.01)
    assert one < other


@pytest.mark.parametrize("texts", [HOSTILE, HOSTILE_TEX])
def test_no_file_for_latex_has_a_command_from_a_text(texts):
    written = latex_files(frame(*texts), REPORT)
    tables = {
        f"tables/{name}.tex" for name in ("scoreboard", "main/loss")
    }  # main.empty has no rows
    assert set(written) == {"numbers.tex", "claims.tex", "example.tex", *tables}
    commands = r"\\(?!text[a-z]+\b|ldots|kern|hspace)[A-Za-z]+"
    for name in ("claims.tex", *tables):
        rows = written[name].rpartition(r"\endlastfoot")[2].partition(r"\end{longtable}")[0]
        assert not re.findall(commands, rows), name


def test_a_table_that_is_too_wide_is_left_to_the_page(tmp_path):
    columns = tuple(f"a name of column {i}" for i in range(20))
    wide = titled_table("w", text_table("Wide", columns, [["1.234567-1.234567-1.234567"] * 20]))
    text = text_of(pdf(f"# T\n\n{wide}", REPORT, {}), tmp_path)
    assert text.endswith("Thetable“Wide”istoowideforprint;summary.htmlhasit.1/1")


def test_print_has_no_cards_and_no_appendices(tmp_path):
    appended = "\n\n[A](#appendices)\n## Appendices\n## A study\nMuch more.\n## Data\nIn files.\n"
    words = template_text(templates(tmp_path), frame())
    text = text_of(pdf(words + appended, REPORT, FIGURES), tmp_path)
    assert not re.search("snakemake|Muchmore", text)
    assert "Infiles." in text


def test_hostile_text_is_printed_as_text_and_the_same_frame_gives_the_same_bytes(tmp_path):
    texts = [text for text in HOSTILE_TEX if "W" not in text]  # that one is too wide for print
    words = template_text(templates(tmp_path), frame(*texts))
    once, twice = (pdf(words, REPORT, FIGURES) for _ in range(2))
    assert once == twice
    assert b"CreationDate" not in once
    assert b"xmp:CreateDate" not in once
    text = text_of(once, tmp_path)
    assert "root:x" not in text
    for hostile in ("#panic()", r"\input{/etc/passwd}", "*b*_e_`c`@x<y>$z$"):
        assert hostile in text, hostile
    assert len(texts) <= text.count("2.500")


@pytest.mark.parametrize(
    ("file", "text"), [("summary.typ", "#nothing()"), ("pages.lua", "nothing()")]
)
def test_an_error_of_a_template_is_explained(tmp_path, file, text):
    for name in ("summary.typ", "pages.lua"):
        shutil.copy(REPORT / name, tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(Explained, match="cannot"):
        pdf("x", tmp_path, {})
