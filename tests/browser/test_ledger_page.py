"""The open ledger in a browser: filters hide rows, and the address of a selection opens it."""

import json
import shutil
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERDICTS = [c["verdict"] for c in json.loads((ROOT / "evidence/claims.json").read_text())["claims"]]


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The front page of the site, without its theme."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    shutil.copytree(ROOT / "docs/_static", tmp_path / "_static")
    path = tmp_path / "index.html"
    text = import_module("open_ledger").front()
    path.write_text(f'<!DOCTYPE html><html lang="en"><meta charset="utf-8">{text}')
    return path


def shown(page) -> int:
    return page.locator("table.ledger tbody tr:visible").count()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_verdict_hides_the_other_rows_and_its_address_shares_them(visit, front, width):
    visited = visit(front, width)
    page = visited.page
    rows = page.locator("table.ledger tbody tr").count()
    assert shown(page) == rows >= len(VERDICTS)
    page.get_by_label("Verdict").select_option("fails")
    assert shown(page) == VERDICTS.count("fails")
    assert page.locator("tr:visible .claim-verdict").all_inner_texts() == ["fails"] * shown(page)
    assert page.locator("output").inner_text() == f"{shown(page)} of {rows} statements"
    address = page.url
    page.get_by_label("Words").fill("a word that no row has")
    assert shown(page) == 0
    page.get_by_role("button").click()
    page.wait_for_function("() => location.hash === ''")
    assert shown(page) == rows
    page.goto(address)
    assert shown(page) == VERDICTS.count("fails")
    assert page.get_by_label("Verdict").input_value() == "fails"
    page.goto(address.replace("fails", "unknown"))
    assert shown(page) == rows
    assert visited.said == []


def test_without_scripts_every_row_is_shown_and_no_filter(visit, front):
    page = visit(front, java_script_enabled=False).page
    assert shown(page) >= len(VERDICTS)
    assert not page.get_by_label("Verdict").is_visible()
