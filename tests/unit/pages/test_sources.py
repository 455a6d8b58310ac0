"""Documents whose statements are tested: each form of the page leads to those that have a link."""

import re

import pytest
from page_recipes import (
    LATEX,
    REPORT,
    claim,
    ledger,
    manifest,
    template_text,
    templates,
    traces,
)

from normscope.pages.frame import Frame, collect
from normscope.pages.latex import files
from normscope.pages.markdown import summary
from normscope.pages.page import page
from normscope.pages.typeset import document

NO_LINK = {"title": "Without a link", "author": None, "link": None}
LINK = "https://example.org/a_b~c/(1)?x=1%20&y=2#z"


@pytest.fixture
def printed() -> Frame:
    stated = ledger(claim(), claim(key="b", document="e"))
    stated["documents"]["d"]["link"] = LINK
    stated["documents"]["e"] = stated["documents"]["d"] | NO_LINK
    return collect({}, stated, {}, level=0.95, traces=traces(stated, "x"))


@pytest.fixture
def text(printed: Frame, tmp_path) -> str:
    """The part of the summary on the ledger."""
    whole = (REPORT / "summary.md").read_text()
    ledgers = re.search(r"## The ledger.*?(?=\{% if sections %\})", whole, re.DOTALL)
    assert ledgers is not None
    return template_text(templates(tmp_path, f"# T\n\n{ledgers[0]}"), printed)


def test_the_page_leads_from_a_statement_to_its_document(printed: Frame, text: str):
    whole = page(REPORT, text, printed, {}, manifest())
    href = LINK.replace("&", "&amp;")
    assert f'<p><a href="{href}">A. Author</a>, page 1' in whole
    assert "<p>Without a link, page 1" in whole
    assert f'<a href="{href}">On norms</a>' in whole


def test_markdown_and_print_name_the_documents_above_their_statements(printed: Frame, text: str):
    parts = document(text, printed)
    kinds = [part["kind"] for part in parts]
    assert kinds[-5:] == ["heading", "paragraph", "cards", "heading", "cards"]
    assert [(r["text"], r["to"]) for r in parts[-4]["runs"]] == [("On norms", LINK)]
    assert [r["text"] for r in parts[-2]["runs"]] == ["Without a link"]
    assert "\n### Without a link\n\n#### Norms help.\n" in summary(text, printed)


def test_latex_lists_the_documents(printed: Frame):
    example = files(printed, LATEX)["example.tex"]
    assert rf"\item A. Author: On norms, \url{{{LINK}}}." in example
    assert r"\item Without a link: Without a link." in example
