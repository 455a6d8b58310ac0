"""The frame: it holds all that is printed, and a change appears in every medium."""

import re

from page_recipes import (
    REPORT,
    findings,
    run,
    traces,
    verdict,
)

from normscope.formats import PERCENT, SIGNIFICANT
from normscope.pages.frame import Figure, Frame, collect
from normscope.pages.latex import macro_name
from normscope.pages.section import Section
from normscope.pages.table import Column, Number, PageTable
from normscope.verdicts.verdict import Verdict

OLD, NEW = 1.9, 7.654  # a number that is in a table, and a macro
TABLE = PageTable("Losses", (Column("arm"), Column("loss", SIGNIFICANT)), (("LayerNorm", 1.9),))


def gathered(*verdicts: Verdict, **sections: Section) -> Frame:
    figures = {"z": Figure("Z", "c"), "a": Figure("A", "")}
    made = run(*verdicts)
    given = {"findings": findings("a"), "scale": "small", "traces": traces(made, "a.py:1-2")}
    return collect(sections, made, figures, **given)


def test_a_frame_joins_the_sections_the_verdicts_and_the_figures():
    one = Section({"seeds": 6}, {"loss": TABLE}, {"layernorm loss": Number(1.9, SIGNIFICANT)})
    printed = gathered(verdict("a"), a=one, b=Section({"seeds": 7}, {"loss": TABLE}))
    assert list(printed.tables) == ["scoreboard", "claims", "a.loss", "b.loss"]
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
