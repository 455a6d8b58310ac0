"""The summary in print: its blocks, hostile text as text, every number, the same bytes twice."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from needed import need
from page_recipes import (
    HOSTILE_TEX,
    REPORT,
    SVG,
    claim,
    frame,
    ledger,
    reading,
    template_text,
    templates,
    text_table,
    traces,
    unasked,
)

from normscope.errors import Explained
from normscope.pages.cards import cards
from normscope.pages.frame import Figure, Frame
from normscope.pages.typeset import document, pdf, printable

LOOK = (REPORT / "summary.typ").read_text()
FIGURES = dict.fromkeys(frame().figures, SVG)


def text_of(data: bytes, place: Path) -> str:
    """The text of a PDF, without what only says where lines end."""
    need(shutil.which("pdftotext"), "pdftotext is not installed")
    (place / "x.pdf").write_bytes(data)
    command = ["pdftotext", "-raw", str(place / "x.pdf"), "-"]
    extracted = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.sub(r"[\s\u200b]+", "", extracted)


@pytest.fixture
def words(tmp_path) -> str:
    """A summary whose every word is hostile."""
    return template_text(templates(tmp_path), frame(*HOSTILE_TEX))


def test_a_summary_is_headings_paragraphs_tables_lists_code_and_figures(tmp_path):
    text = template_text(templates(tmp_path), frame())
    parts = document(text, frame())
    kinds = [part["kind"] for part in parts]
    assert kinds == [
        *("heading", "paragraph", "table", "heading", "figure", "table", "plots", "cards", "cards"),
        *("heading", "paragraph", "list", "code", "table", "heading", "paragraph"),
        *("heading", "figure", "figure", "paragraph"),
    ]
    picture = parts[-2]
    assert (picture["path"], picture["title"]) == ("figures/final_norm.svg", "Title words")
    assert [(r["text"], r["style"]) for r in picture["caption"]] == [
        ("Title words.", "em"),
        (" Caption words", ""),
    ]


def test_styles_and_links_are_runs(tmp_path):
    (paragraph,) = document("a *b* **c** `d` <https://example.org/>\ne", frame())
    styles = [(run["text"], run["style"], run["to"]) for run in paragraph["runs"]]
    assert ("b", "em", "") in styles
    assert ("c", "strong", "") in styles
    assert ("d", "code", "") in styles
    assert ("https://example.org/", "link", "https://example.org/") in styles


def test_a_table_that_is_too_wide_is_left_to_the_page(tmp_path):
    columns = tuple(f"a long name of column {i}" for i in range(20))
    wide = text_table("Wide", columns, [["1.234567 [1.234567, 2.345678]"] * 20] * 40)
    printed = Frame({}, {}, {"wide": wide, "none": text_table("", columns)}, {}, {})
    top = "## H\n\n{{ table('wide') }}\n\n{{ table('none') }}"
    _, note, none = document(template_text(templates(tmp_path, top), printed), printed)
    assert note["runs"][0]["text"] == "The table “Wide” is too wide for print; summary.html has it."
    assert none["runs"][0]["text"] == "none"


def test_print_leaves_out_figures_on_which_no_statement_with_data_rests():
    printed = frame(names=("loss", "curves", "reach"))
    without = [{**c, "has_data": c["figure"] != "curves"} for c in printed.cards]
    parts = document("\ue000figures\ue000", replace(printed, cards=without))
    assert [part["path"] for part in parts] == ["figures/loss.svg", "figures/reach.svg"]


def test_a_norm_card_which_has_no_statements_keeps_its_figure():
    (figure,) = document("\ue000figures\ue000", Frame({}, {}, {}, {"card": Figure("T", "C")}, {}))
    assert figure["path"] == "figures/card.svg"


def test_short_cards_are_set_between_the_ledger_and_the_appendices(tmp_path):
    """With the quote that decides and what was measured; without data, with neither."""
    printed = frame("words of a reading", names=("loss",))
    empty = reading(quote="not printed", corrected="difference: no data", alone="no data", cases={})
    several = {name: reading()["cases"][""] for name in ("one", "two")}
    kinds = {
        "a": claim(
            verdict="depends",
            differs_because="small models",
            limits="one text",
            readings={"stated": reading(quote="it decides"), "other": empty},
        ),
        "c": claim(
            key="c", readings={"stated": reading(cases=several, corrected="one: 1; two: 2")}
        ),
        "e": claim(
            key="e",
            statement="Empty.",
            n=0,
            effect=None,
            readings={"stated": empty, "never": empty},
        ),
        "u": unasked(quote="they do"),
    }
    stated = ledger(*kinds.values())
    printed = replace(printed, cards=cards(stated, traces(stated, "a")))
    text = "## The ledger\n\nIntroduction.\n\n\ue000cards:d\ue000\n\n## Appendices\n\nThe end."
    shown = text_of(pdf(LOOK, text, printed, FIGURES), tmp_path)
    kept = (
        "Introduction.",
        "itdecides",
        "other:nodata",
        "whyitdiffers:smallmodels",
        "limits:onetext",
        "one:1;two:2",
        "Empty.",
        "theydo",
        "AthousandGPUs",
        "Theend.",
    )
    assert [word for word in kept if word not in shown] == []
    for absent in ("notprinted", "difference:nodata", "never:"):
        assert absent not in shown
    assert shown.count("main.runs") == 3


def test_a_card_is_printable():
    printed = frame("模", names=("loss",))
    (cards,) = document("\ue000cards:questions\ue000", printed)
    (card,) = cards["cards"]
    assert card["figure"] == "[U+6A21]"
    assert card["tables"] == ["main.runs"]
    assert card["plot"]["marks"][0]["decides"] is True


def test_what_has_no_letter_is_shown_by_its_number():
    assert printable("模 🙂\u200b\x07 é−Ω") == "[U+6A21] [U+1F642][U+200B][U+0007] é−Ω"


def test_an_error_of_the_template_is_told():
    with pytest.raises(Explained, match="Typst cannot set the summary"):
        pdf("#nothing()", "", Frame({}, {}, {}, {}, {}), {})


def test_hostile_text_is_printed_as_text_and_the_same_frame_gives_the_same_bytes(tmp_path, words):
    once, twice = (pdf(LOOK, words, frame(*HOSTILE_TEX), FIGURES) for _ in range(2))
    assert once == twice
    assert b"CreationDate" not in once
    assert b"xmp:CreateDate" not in once
    text = text_of(once, tmp_path)
    assert "root:x" not in text
    for hostile in ("#panic()", r"\input{/etc/passwd}", "[U+6A21]", "*b*_e_`c`@x<y>$z$"):
        assert hostile in text, hostile
    assert len(HOSTILE_TEX) <= text.count("2.500")
