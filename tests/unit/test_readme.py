"""What README, CONTRIBUTING and the pages of the site show and name is there."""

import re
from pathlib import Path

import pytest
import yaml
from processes import ROOT

from normscope.config import load

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)
NAMED = r"(?<![\w/.])(?:config|src|benchmarks|scripts|workflow|tests|profiles|data|docs)/[\w./-]*\w"
YOURS = {"scripts/figures/seeds.py", "data/tinyshakespeare.txt", "docs/_build/html"}  # to be made


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path):
    text = page.read_text()
    links = [link for link in re.findall(r"\]\(([^)#\s]+)\)", text) if ":" not in link]
    assert [link for link in links if not (page.parent / link).is_file()] == []
    assert {path for path in re.findall(NAMED, text) if not (ROOT / path).exists()} <= YOURS
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^(?:\| )?`?make ([a-z-]+)", text, re.MULTILINE))
    targets |= set(re.findall(r"`make ([a-z-]+)", text))
    assert {t for t in targets if not re.search(rf"^{t}:", makefile, re.MULTILINE)} == set()


def test_the_table_has_a_row_for_every_arm_of_the_default_grid():
    runs = load(yaml.safe_load((ROOT / "config.yaml").read_text())).runs
    cells = {
        (arm, place)
        for grid in runs
        if grid.protocol == "nanogpt"
        for arm in grid.arms
        for place in grid.placements
    }
    for page in ("README.md", "docs/results.md"):
        table = re.search(r"<!-- results: .*?<!-- end", (ROOT / page).read_text(), re.DOTALL)
        assert table
        assert len(re.findall(r"^\| .+ \| \d+ \| [\d.]+ \|", table[0], re.MULTILINE)) == len(cells)


def test_the_names_of_jobs_are_those_of_the_configuration():
    text = (ROOT / "docs/reference/results.md").read_text()
    named = re.findall(r"^\| `(\w+)` \| .+ \| `([\w.-]+)` \|$", text, re.MULTILINE)
    studies = load(yaml.safe_load((ROOT / "config.yaml").read_text())).studies
    assert {study for study, _ in named} == {name for name, s in studies.items() if s.trainings()}
    assert [name for study, name in named if name not in studies[study].trainings()] == []


def test_the_readme_is_read_in_one_sitting():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
