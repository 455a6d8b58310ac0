"""The gallery: a row and a card for every norm, with the numbers of the kept tables."""

import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from normscope.config import load
from normscope.nn.arms import LABELS
from normscope.pilot import read_project

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEPT = Path(os.environ.get("NORMSCOPE_EVIDENCE", ROOT / "evidence"))


def norms() -> list[str]:
    """The norms whose cards the site shows."""
    card = load(read_project(ROOT, ROOT / "config/gallery.yaml")).card
    assert card is not None
    return card.norm


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return import_module("gallery")


class Cells(HTMLParser):
    """The cells of each row of a table by its id, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, list[str]] = {}
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "tr" and "id" in given:
            self.rows[given["id"]] = []
        elif tag in ("td", "th") and self.rows:
            [*self.rows.values()][-1].append("")
        elif tag == "a":
            self.links.append(given["href"])

    def handle_data(self, data: str) -> None:
        if self.rows and (row := [*self.rows.values()][-1]):
            row[-1] += data.strip("\n")


def by(name: str, *keys: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The rows of a kept table by their keys."""
    rows = pd.read_csv(KEPT / f"card/{name}.csv").to_dict("records")
    return {tuple(row[key] for key in keys): {str(k): v for k, v in row.items()} for row in rows}


def signed(number: float) -> str:
    return f"{number:+.3f}".replace("-", "−")


def compared(norm: str, row: Mapping[str, Any]) -> str:
    """What a cell shows of a row of the table of losses."""
    if norm == "layernorm":
        return "the reference"
    value, low, high = (signed(row[f"difference{end}"]) for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]{row['reads']}, n = {row['pairs']}"


def test_numbers_are_those_of_the_kept_tables(gallery: ModuleType):
    shown = Cells(gallery.front())
    assert list(shown.rows) == norms()
    losses = by("compared", "arm", "regime")
    ranges = by("sensitivity", "arm")
    times = by("speed", "arm", "width", "mode")
    for norm, cells in shown.rows.items():
        assert cells[0] == LABELS[norm]
        for cell, regime in zip(cells[1:4], ("short", "long", "deep"), strict=True):
            assert cell == compared(norm, losses[norm, regime])
        low, high = (ranges[norm,][end] for end in ("from", "to"))
        near = f"{low:g} alone;" if low == high else f"{low:g} to {high:g};"
        assert cells[4].startswith("none" if math.isnan(low) else near)
        is_timed = norm != "none"
        assert cells[6] == (
            f"{times[norm, 1024, 'eager']['to_layernorm']:.2f}" if is_timed else "–"
        )


def test_every_norm_has_its_card_with_its_sentences(gallery: ModuleType, tmp_path: Path):
    checks = import_module("checks")
    (tmp_path / "_static").mkdir()
    (tmp_path / "gallery.html").write_text(gallery.front())
    gallery.write_cards(tmp_path)
    links = Cells(gallery.front()).links
    assert links == [f"card/{norm}.html" for norm in norms()]
    assert list(checks.dead_links(tmp_path)) == []
    assert checks.loaded(tmp_path) == []
    for norm, link in zip(norms(), links, strict=True):
        page = (tmp_path / link).read_text()
        assert f"<title>{LABELS[norm]}: a card" in page
        assert Cells(gallery.front()).rows[norm][4] in page


def test_the_opening_says_where_the_cards_are_from(gallery: ModuleType):
    run = gallery.kept_results().run
    for fact in (run.card.budget, run.chip, run.date, f"{60 * run.core_hours:.0f} core-minutes"):
        assert fact in gallery.opening()
    text = (DOCS / "gallery.md").read_text()
    assert gallery.opening() in gallery.filled(text)
    assert gallery.filled("no mark") == "no mark"


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_build_writes_the_cards_or_says_how_to_make_them(is_kept: bool, tmp_path: Path):
    evidence, pages = tmp_path / "evidence", tmp_path / "pages"
    ignored = None if is_kept else shutil.ignore_patterns("card")
    shutil.copytree(KEPT, evidence, ignore=ignored)
    (pages / "_static").mkdir(parents=True)
    for name in ("tutorial.css", "ledger.css"):
        shutil.copy(DOCS / "_static" / name, pages / "_static")
    (pages / "index.md").write_text("# Site\n\n```{toctree}\ngallery\n```\n")
    (pages / "gallery.md").write_text("# Gallery\n\n<!-- gallery -->\n")
    options = ["-W", "-n", "-q", "-E", "-b", "html", "-c", str(DOCS), "-d", str(tmp_path / "trees")]
    build = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(pages), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NORMSCOPE_EVIDENCE": str(evidence)},
    )
    cards = {path.stem for path in (tmp_path / "html/card").glob("*.html")}
    assert (build.returncode == 0) == is_kept, build.stderr
    assert not (is_kept and build.stderr)
    assert cards == (set(norms()) if is_kept else set())
    assert is_kept or re.search(r"card lacks run\.json, .*: run `make gallery`", build.stderr)
