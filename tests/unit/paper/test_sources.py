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
    traces,
)
from pydantic import ValidationError

from normscope.ledger.entry import Document
from normscope.paper.frame import Frame, collect
from normscope.paper.latex import files
from normscope.paper.markdown import summary
from normscope.paper.page import page
from normscope.paper.typeset import document

LINK = "https://example.org/a_b~c/(1)?x=1%20&y=2#z"


@pytest.fixture
def printed() -> Frame:
    stated = ledger(claim(), claim(key="b", document="e"))
    stated["documents"]["d"]["link"] = LINK
    stated["documents"]["e"] = {"title": "Without a link", "author": None, "link": None}
    return collect({}, stated, {}, level=0.95, traces=traces(stated, "x"))


@pytest.fixture
def text(printed: Frame, tmp_path) -> str:
    """The part of the summary on the ledger."""
    whole = (REPORT / "summary.md").read_text()
    ledgers = re.search(r"## The ledger.*?(?=Each document is one family)", whole, re.DOTALL)
    assert ledgers is not None
    (tmp_path / "summary.md").write_text(f"# T\n\n{ledgers[0]}{{{{ table('traces') }}}}")
    return template_text(tmp_path, printed)


def test_the_page_leads_from_a_statement_to_its_document(printed: Frame, text: str):
    whole = page(REPORT, text, printed, {}, manifest())
    href = LINK.replace("&", "&amp;")
    rows = re.findall(r'<tr[^>]* id="statement-\w+".*?</tr>', whole, re.DOTALL)
    assert [f'<a href="{href}">A. Author, page 1</a>' in row for row in rows] == [True, False]
    assert "<span>Without a link, page 1</span>" in rows[1]
    assert f'<a href="{href}">A. Author</a>: On norms' in whole


def test_markdown_and_print_list_the_documents(printed: Frame, text: str):
    (items,) = (p["items"] for p in _flat(document(text, printed)) if p["kind"] == "list")
    shown = [[(r["text"], r["to"]) for r in item if r["text"]] for item in items]
    assert shown[0][0] == ("A. Author", LINK)
    assert shown[1] == [("Without a link", "")]
    assert "- Without a link\n" in summary(text, printed)


def _flat(parts: list[dict]) -> list[dict]:
    return [part for block in parts for part in block.get("blocks", [block])]


def test_latex_lists_the_documents(printed: Frame):
    example = files(printed, LATEX)["example.tex"]
    assert rf"\item A. Author: On norms, \url{{{LINK}}}." in example
    assert r"\item Without a link: Without a link." in example


@pytest.mark.parametrize("link", ["javascript:alert(1)", "page.html", "https://a b", "http://<x>"])
def test_a_link_leads_to_a_page_of_the_web(link: str):
    with pytest.raises(ValidationError, match="link"):
        Document(title="T", claims={}, link=link)
