"""Documents whose statements are tested: each form of the page leads to those that have a link."""

import re

import pytest
from page_recipes import (
    REPORT,
    claim,
    ledger,
    manifest,
    template_text,
    templates,
    traces,
)

from normscope.pages.frame import Frame, collect
from normscope.pages.page import page

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
    whole = page(REPORT, text, {}, manifest())
    href = LINK.replace("&", "&amp;")
    assert f'<p><a href="{href}">A. Author</a>, page 1' in whole
    assert "<p>Without a link, page 1" in whole
    assert f'<a href="{href}">On norms</a>' in whole
    assert "Without a link</h3>" in whole
