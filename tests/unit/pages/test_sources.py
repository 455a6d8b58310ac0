"""Documents whose statements are tested: the page leads to those that have a link."""

import re

import pytest
from page_recipes import REPORT, manifest, run, template_text, templates, traces, verdict

from normscope.pages.frame import Frame, collect
from normscope.pages.page import page
from normscope.verdicts.document import Head

LINK = "https://example.org/a_b~c/(1)?x=1%20&y=2#z"


@pytest.fixture
def printed() -> Frame:
    other = verdict("b").model_copy(update={"document": "e"})
    documents = {"d": Head(title="On norms", by="A. Author", link=LINK)}
    documents["e"] = Head(title="Without a link")
    made = run(verdict("a"), other).model_copy(update={"documents": documents})
    return collect({}, made, {}, traces=traces(made, "x"))


@pytest.fixture
def text(printed: Frame, tmp_path) -> str:
    """The part of the summary on statements."""
    whole = (REPORT / "summary.md").read_text()
    stated = re.search(r"## Statements.*?(?=\{% if sections %\})", whole, re.DOTALL)
    assert stated is not None
    return template_text(templates(tmp_path, f"# T\n\n{stated[0]}"), printed)


def test_the_page_leads_from_a_statement_to_its_document(printed: Frame, text: str):
    whole = page(REPORT, text, {}, manifest())
    href = LINK.replace("&", "&amp;")
    assert f'<p><a href="{href}">A. Author</a>, words' in whole
    assert "<p>Without a link, words" in whole
    assert f'<a href="{href}">On norms</a>' in whole
    assert "Without a link</h3>" in whole
