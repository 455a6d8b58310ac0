"""The frame: it holds all that is printed, and a change appears in every medium."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from page_recipes import (
    HOSTILE,
    REPORT,
    SVG,
    frame,
    manifest,
    run,
    template_text,
    templates,
    traces,
    verdict,
)

from normscope.formats import GENERAL, PERCENT, SIGNIFICANT
from normscope.pages.frame import Figure, Frame, collect, read
from normscope.pages.latex import latex_files, macro_name
from normscope.pages.page import page
from normscope.pages.pandoc import convert, github
from normscope.pages.section import Section
from normscope.pages.table import Column, Number, PageTable
from normscope.verdicts.verdict import Verdict

OLD, NEW = 1.9, 7.654  # a number that is in a table, and a macro
TABLE = PageTable("Losses", (Column("arm"), Column("loss", SIGNIFICANT)), (("LayerNorm", 1.9),))


def gathered(*verdicts: Verdict, **sections: Section) -> Frame:
    figures = {"z": Figure("Z", "c"), "a": Figure("A", "")}
    made = run(*verdicts)
    return collect(sections, made, figures, traces=traces(made, "a.py:1-2"))


def test_a_frame_is_read_as_it_was_written(tmp_path):
    was = frame(HOSTILE[-2], names=("z", "a"))
    was.write(tmp_path / "frame.json")
    now = read(tmp_path / "frame.json")
    assert now == was
    for part in ("sections", "tables", "figures"):  # the paper's order
        assert list(getattr(now, part)) == list(getattr(was, part))
    now.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "frame.json").read_bytes()


def test_a_frame_joins_the_sections_the_verdicts_and_the_figures():
    one = Section({"seeds": 6}, {"loss": TABLE}, {"layernorm loss": Number(1.9, SIGNIFICANT)})
    printed = gathered(verdict("a"), a=one, b=Section({"seeds": 7}, {"loss": TABLE}))
    assert list(printed.tables) == ["scoreboard", "disputes", "claims", "a.loss", "b.loss"]
    assert printed.tables["a.loss"] == TABLE
    assert [card["key"] for card in printed.cards] == ["a"]
    assert printed.sections == {"a": one.words, "b": {"seeds": 7}}
    assert list(printed.figures) == ["z", "a"]
    assert printed.words["totals"]["words"] == {"as claimed": 1}
    assert printed.words["level"] == Number(0.95, PERCENT)
    numbers = {name: str(number) for name, number in printed.numbers.items()}
    expected = {"layernorm loss": "1.90", "claims": "1", "claims as claimed": "1"}
    assert numbers.items() >= expected.items()


def test_the_example_for_latex_names_macros_that_exist():
    named = re.findall(r"\\normscope[A-Z]\w*", (REPORT / "example.tex").read_text())
    assert named
    assert {*named} <= {macro_name(name) for name in gathered(verdict("a")).numbers}


def printed_files(printed: Frame, folder) -> dict[str, str]:
    """Every file of the paper, as text."""
    text = template_text(folder, printed)
    svgs = dict.fromkeys(printed.figures, SVG)
    return {
        "summary.md": github(text),
        "summary.html": page(REPORT, text, svgs, manifest()),
        "summary.pdf": convert(text, "typst", REPORT),
        **latex_files(printed, REPORT),
    }


def changes(was: Mapping[str, str], now: Mapping[str, str]) -> dict[str, list[str]]:
    """The new lines of each file that differs."""
    assert was.keys() == now.keys()
    new = {name: set(now[name].splitlines()) - set(text.splitlines()) for name, text in was.items()}
    return {name: sorted(lines) for name, lines in new.items() if lines}


PAGES = {"summary.md", "summary.html", "summary.pdf"}


def changed(part: str, printed: Frame) -> Frame:
    """The frame with NEW in one place."""
    tables, loss, stated = printed.tables, printed.tables["main.loss"], printed.tables["claims"]
    card = {**printed.cards[0], "finding": f"It is {NEW}."}
    cells = tuple(tuple(NEW if c == OLD else c for c in row) for row in loss.rows)
    first, *others = stated.rows
    claims = ((*first[:3], str(NEW), *first[4:]), *others)
    return replace(
        printed,
        **{
            "cell": {"tables": {**tables, "main.loss": replace(loss, rows=cells)}},
            "verdict": {"tables": {**tables, "claims": replace(stated, rows=claims)}},
            "card": {"cards": [card, *printed.cards[1:]]},
            "number": {"numbers": {**printed.numbers, "layernorm pre loss": Number(NEW, GENERAL)}},
            "word": {"sections": {"main": {**printed.sections["main"], "steps": NEW}}},
            "caption": {"figures": {**printed.figures, "final_norm": Figure("T", f"n: {NEW}")}},
        }[part],
    )


@pytest.mark.parametrize(
    ("part", "places"),
    [
        ("cell", PAGES | {"tables/main/loss.tex"}),
        ("verdict", {"summary.md", "summary.html", "summary.pdf", "claims.tex"}),
        ("card", PAGES),
        ("number", {"numbers.tex"}),
        ("word", PAGES),
        ("caption", PAGES),
    ],
)
def test_a_change_of_the_frame_appears_wherever_it_is_printed_and_nowhere_else(
    tmp_path, part, places
):
    folder = templates(tmp_path)
    was = printed_files(frame(), folder)
    changed_places = changes(was, printed_files(changed(part, frame()), folder))
    assert set(changed_places) == places
    assert all(any(str(NEW) in line for line in lines) for lines in changed_places.values())
    if part in ("cell", "word"):  # one line a place
        assert all(str(NEW) in line for lines in changed_places.values() for line in lines)
