"""The summary in print: its blocks, hostile text as text, every number, the same bytes twice."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from latex_recipes import HOSTILE, hostile_frame
from processes import SCRIPTS

from normscope.errors import Explained
from normscope.paper.markdown import summary
from normscope.paper.typeset import document, pdf, printable, runs

LOOK = (SCRIPTS.parent / "workflow" / "report" / "summary.typ").read_text()
WORDS = "# Title\n\nOpening.\n\n## Ledger\n\n[[table ledger]]\n\n## Losses\n\n[[table loss]]\n\n"
WORDS += "- one\n- two\n\n```\ncode\n```\n\n## Figures\n\n[[figures]]\n\nEnd, `code`.\n"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="9"><path d="M0 0h9"/></svg>'
FIGURES = {"figures/loss.svg": SVG}


def text_of(data: bytes, place: Path) -> str:
    """The text of a PDF, without what only says where lines end."""
    if not shutil.which("pdftotext"):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("pdftotext is not installed")
    (place / "x.pdf").write_bytes(data)
    command = ["pdftotext", "-raw", str(place / "x.pdf"), "-"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.sub(r"[\s\u200b]+", "", found)


def blocks() -> list[dict]:
    return document(summary(WORDS, hostile_frame()))


def flat(found: list[dict]) -> list[dict]:
    return [b for block in found for b in block.get("blocks", [block])]


def test_a_summary_is_headings_paragraphs_tables_lists_code_and_figures():
    kinds = [block["kind"] for block in flat(blocks())]
    assert kinds.count("heading") == 4
    assert kinds.count("table") == 2
    assert {"list", "code", "figure", "paragraph"} <= set(kinds)


def test_a_figure_takes_the_paragraph_after_it_as_its_caption():
    found = document("![t](figures/loss.svg)\n\n*t.* words\n\nmore")
    assert [block["kind"] for block in found] == ["figure", "paragraph"]
    assert "".join(run["text"] for run in found[0]["caption"]) == "t. words"
    assert found[0]["caption"][0]["style"] == "em"


def test_styles_and_links_are_runs():
    (found,) = document("a *b* **c** `d` <https://example.org/>\ne")
    styles = [(run["text"], run["style"], run["to"]) for run in found["runs"]]
    assert ("b", "em", "") in styles
    assert ("c", "strong", "") in styles
    assert ("d", "code", "") in styles
    assert ("https://example.org/", "link", "https://example.org/") in styles
    assert runs([]) == []


def test_a_wide_table_lies_with_its_heading_on_a_sheet():
    cells = " | ".join(["1.234567 [1.234567, 2.345678]"] * 20)
    head = " | ".join(f"a long name of column {i}" for i in range(20))
    wide = f"| {head} |\n| {' | '.join(['---'] * 20)} |\n" + f"| {cells} |\n" * 40
    found = document(f"Before.\n\n## H\n\n{wide}\nafter")
    assert [block["kind"] for block in found] == ["paragraph", "sheet", "paragraph"]
    assert [block["kind"] for block in found[1]["blocks"]] == ["heading", "table"]


def test_what_has_no_letter_is_shown_by_its_number():
    assert printable("模 🙂\u200b\x07 é−Ω") == "[U+6A21] [U+1F642][U+200B][U+0007] é−Ω"


def test_a_block_that_has_no_form_is_named():
    with pytest.raises(Explained, match=r"line 1 .* blockquote_open.*; write it as"):
        document("> quoted")


def test_a_missing_figure_is_named():
    with pytest.raises(Explained, match=r"figures/loss\.svg.*draw it first"):
        pdf(LOOK, summary(WORDS, hostile_frame()), {})


def test_an_error_of_the_template_is_told():
    with pytest.raises(Explained, match="Typst cannot set the summary"):
        pdf("#nothing()", "", {})


def test_hostile_text_is_printed_as_text_and_every_number_is_there(tmp_path):
    frame = hostile_frame()
    data = pdf(LOOK, summary(WORDS, frame), FIGURES)
    text = text_of(data, tmp_path)
    assert "root:x" not in text
    for hostile in ("#panic()", r"\input{/etc/passwd}", "[U+6A21]", "*b*_e_`c`@x<y>$z$"):
        assert hostile in text, hostile
    for value in frame.tables["loss"].iloc[:, 1]:
        assert value in text
    assert len(HOSTILE) <= text.count("1.0")


def test_the_same_frame_is_the_same_bytes_without_a_date():
    words = summary(WORDS, hostile_frame())
    once, twice = pdf(LOOK, words, FIGURES), pdf(LOOK, words, FIGURES)
    assert once == twice
    assert b"CreationDate" not in once
    assert b"xmp:CreateDate" not in once


def test_the_script_writes_the_print(tmp_path, monkeypatch):
    hostile_frame().write(tmp_path / "frame.json")
    (tmp_path / "summary.md").write_text(WORDS)
    (tmp_path / "summary.typ").write_text(LOOK)
    (tmp_path / "loss.svg").write_bytes(SVG)
    words = ["typeset.py", "--frame", tmp_path / "frame.json", "--figures", tmp_path]
    words += ["--template", tmp_path / "summary.md", "--layout", tmp_path / "summary.typ"]
    monkeypatch.setattr(sys, "argv", [*map(str, words), "--out", str(tmp_path / "out.pdf")])
    runpy.run_path(str(SCRIPTS / "typeset.py"), run_name="__main__")
    assert (tmp_path / "out.pdf").read_bytes().startswith(b"%PDF")
