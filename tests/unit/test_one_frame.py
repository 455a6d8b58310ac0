"""One frame: a number that changes there changes wherever it is printed, and nothing else does."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import pytest
from page_recipes import LOOK, manifest, svg

from normscope.paper.frame import Frame
from normscope.paper.latex import files
from normscope.paper.markdown import summary
from normscope.paper.page import page
from normscope.paper.typeset import document

TEMPLATE = """# The title

It was {level} of {steps}.

## The ledger of claims

[[table ledger]]

## Losses

[[table loss]]

## Figures

[[figures]]

The end.
"""
LEDGER = "statement,source,published number,published,corrected,effect,n,Hedges g,p (Holm),"
LEDGER += "figure,why"
OLD, NEW = "1.897", "7.654"  # a number that is in a table, and as a macro


def frame() -> Frame:
    rows = [
        ["It holds.", "A, 1", "2.71", "holds", "holds", "loss: 0.5", "6 seeds", "1.1", "0.031"],
        ["It fails.", "B, 2", "–", "holds", "fails", "loss: 0.7", "7 seeds", "1.3", "0.016"],
    ]
    ledger = pd.DataFrame([[*row, "loss", "–"] for row in rows], columns=LEDGER.split(","))
    loss = pd.DataFrame({"arm": ["LayerNorm", "RMSNorm"], "n": ["3", "5"], "loss": [OLD, "2.345"]})
    numbers = {"layernorm loss": OLD, "rmsnorm loss": "2.345", "text steps": "1234"}
    captions = {"loss": ("Validation loss", "n: 3 trained models.")}
    texts = {"level": "95%", "steps": "1234"}
    return Frame(texts, {"ledger": ledger, "loss": loss}, captions, numbers)


def printed(of: Frame) -> dict[str, str]:
    """All that is made from a frame, by file; the print before it is set."""
    words = summary(TEMPLATE, of)
    return {
        "summary.md": words,
        "summary.html": page(TEMPLATE, of, {"loss": svg()}, manifest(), LOOK),
        "summary.pdf": json.dumps(document(words), indent=1, ensure_ascii=False),
        **files(of),
    }


def changes(was: Mapping[str, str], now: Mapping[str, str]) -> dict[str, list[str]]:
    """Lines that are new, by file; files are the same."""
    assert was.keys() == now.keys()
    found = {}
    for name, text in was.items():
        lines = difflib.ndiff(text.splitlines(), now[name].splitlines())
        new = [line[2:] for line in lines if line.startswith("+ ")]
        if new:
            found[name] = new
    return found


def test_a_cell_changes_its_line_in_every_table_and_nothing_else():
    was = frame()
    loss = was.tables["loss"].replace(OLD, NEW)
    now = replace(was, tables={**was.tables, "loss": loss})
    found = changes(printed(was), printed(now))
    assert set(found) == {"summary.md", "summary.html", "summary.pdf", "tables/loss.tex"}
    for name, lines in found.items():
        assert all(NEW in line for line in lines), (name, lines)
        assert OLD not in printed(now)[name]


def test_a_number_changes_its_macro_wherever_it_is_used():
    was = frame()
    now = replace(was, numbers={**was.numbers, "layernorm loss": NEW})
    found = changes(printed(was), printed(now))
    assert set(found) <= {"numbers.tex", "example.tex"}
    assert "numbers.tex" in found
    for lines in found.values():
        assert all(NEW in line for line in lines), lines


@pytest.mark.parametrize(("column", "new"), [("p (Holm)", "0.444"), ("corrected", "undecided")])
def test_a_word_of_the_ledger_changes_in_all_that_show_it(column, new):
    was = frame()
    ledger = was.tables["ledger"].copy()
    ledger.loc[0, column] = new
    found = changes(printed(was), printed(replace(was, tables={**was.tables, "ledger": ledger})))
    assert {"summary.md", "summary.html", "summary.pdf", "claims.tex"} == set(found)
    for name in ("summary.md", "claims.tex"):
        assert all(new in line for line in found[name]), found[name]


def test_a_text_and_a_caption_change_where_they_stand():
    was = frame()
    texts = replace(was, texts={**was.texts, "steps": "4321"})
    found = changes(printed(was), printed(texts))
    assert set(found) == {"summary.md", "summary.html", "summary.pdf"}
    assert all("4321" in line for lines in found.values() for line in lines)
    other = replace(was, captions={"loss": ("Validation loss", "n: 9 trained models.")})
    found = changes(printed(was), printed(other))
    assert set(found) == {"summary.md", "summary.html", "summary.pdf", "example.tex"}
    assert all("9 trained" in line for lines in found.values() for line in lines)
