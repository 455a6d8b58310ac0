"""The page of the evidence has every statement, and every kept norm has its card."""

import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from normscope.config import load
from normscope.errors import Explained
from normscope.nn.arms import LABELS
from normscope.pilot import read_project
from normscope.verdicts.verdict import read

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "evidence"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        import_module("whole_pages").write(folder)
        yield folder


def test_every_statement_has_an_anchor_with_its_verdict_and_its_comparisons(site: Path):
    page = BeautifulSoup((site / "summary.html").read_text(), "html.parser")
    verdicts = read(EVIDENCE / "claims.json").verdicts
    assert len(page.select("[id^=statement-]")) == len(verdicts)
    for verdict in verdicts:
        (card,) = page.select(f"details:has(#statement-{verdict.key})")
        (word,) = card.select(".verdict")
        assert " ".join(verdict.statement.says.split()) in " ".join(card.text.split())
        assert word.text.startswith(verdict.word)
        text = " ".join(card.text.split())
        for name, result in verdict.results.items():
            assert (f"{name}: {result.outcome}" if name and result.n else name) in text
    figures = {f"figure-{path.stem}" for path in (EVIDENCE / "figures").glob("*.svg")}
    assert {str(figure["id"]) for figure in page.select("figure")} == figures


def test_every_kept_norm_has_its_card(site: Path):
    card = load(read_project(ROOT, ROOT / "config/gallery.yaml")).card
    assert card is not None
    links = import_module("whole_pages").filled("<!-- cards -->")
    assert {path.stem for path in (site / "card").glob("*.html")} == {*card.norm}
    for norm in card.norm:
        assert f'href="card/{norm}.html"' in links
        assert f"<title>{LABELS[norm]}: a card" in (site / f"card/{norm}.html").read_text()


def test_the_files_load_nothing_and_their_links_lead_somewhere(site: Path):
    checks = import_module("checks")
    assert checks.loaded(site) == []
    assert list(checks.dead_links(site)) == []


def test_evidence_without_cards_says_how_to_make_them(tmp_path: Path, monkeypatch):
    shutil.copy(EVIDENCE / "claims.json", tmp_path)
    monkeypatch.setenv("NORMSCOPE_EVIDENCE", str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    with pytest.raises(Explained, match="run `make gallery`"):
        import_module("whole_pages").filled("<!-- cards -->")
