"""The page of the evidence has every statement, and every kept norm has its card."""

import json
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

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "evidence"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        import_module("whole_pages").write(folder)
        yield folder


def test_every_statement_has_an_anchor_with_its_verdict_and_its_readings(site: Path):
    page = BeautifulSoup((site / "summary.html").read_text(), "html.parser")
    ledger = json.loads((EVIDENCE / "claims.json").read_text())
    rows = [*ledger["claims"], *ledger["unasked"]]
    assert len(page.select("[id^=statement-]")) == len(rows)
    for row in rows:
        (card,) = page.select(f"details:has(#statement-{row['key']})")
        (summary,), (verdict,) = card.select("summary"), card.select("summary .verdict")
        assert row["statement"] in summary.text
        is_unasked = row["verdict"] == "unasked"
        assert verdict.text.startswith("cannot be asked" if is_unasked else row["verdict"])
        for reading in row.get("readings", {}).values():
            assert reading["alone"] in card.text
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
