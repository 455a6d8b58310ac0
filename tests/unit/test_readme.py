"""What README, CONTRIBUTING and the pages of the site show and name is there."""

import re
import runpy
import subprocess
import sys
from difflib import ndiff
from pathlib import Path

import pytest
import yaml
from processes import ROOT

from normscope.config import load
from normscope.pages.table import Column, PageTable
from normscope.pilot import read_project

README = runpy.run_path(str(ROOT / "docs/readme.py"))
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)
NAMED = r"(?<![\w/.])(?:config|src|benchmarks|scripts|workflow|tests|profiles|data|docs)/[\w./-]*\w"
YOURS = {
    "data/tinyshakespeare.txt",
    "docs/_build/html",
    "workflow/schemas/config.schema.json",
}  # to be made


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


@pytest.mark.parametrize("page", [ROOT / "Makefile", *PAGES], ids=lambda p: p.name)
def test_no_target_follows_configfile(page: Path):
    """Snakemake takes all words after it as files."""
    given = re.findall(r"snakemake [^`\n]*--configfile ((?:[\w./]+ *)+)", page.read_text())
    words = [word for words in given for word in words.split()]
    assert [word for word in words if not word.endswith(".yaml")] == []


@pytest.mark.parametrize("page", README["PAGES"], ids=lambda p: p.name)
def test_a_page_shows_what_the_evidence_has(page: Path):
    text = page.read_text()
    now = README["refreshed"](text, README["tables"]())
    stale = [line for line in ndiff(text.splitlines(), now.splitlines()) if line[0] in "+-"]
    assert stale == [], "make readme"


def test_a_number_that_changes_in_the_evidence_makes_its_pages_stale():
    shown = {name: PageTable("", (Column("loss"),), (("7.654",),)) for name in README["tables"]()}
    for page in README["PAGES"]:
        text = page.read_text()
        tables = re.findall(r"^<!-- (\w+): make readme -->$", text, re.MULTILINE)
        assert README["refreshed"](text, shown).count("| 7.654 |") == len(tables) > 2


def test_pages_show_the_figures_that_are_kept():
    kept = yaml.safe_load((ROOT / "docs/shown.yaml").read_text())["figures"]
    pages = [*README["PAGES"], *(ROOT / "docs/tutorial").glob("*.md")]
    text = "".join(page.read_text() for page in pages)
    shown = re.findall(r"evidence/figures/(\w+)\.svg\)|{result-figure} (\w+)", text)
    assert {name for names in shown for name in names if name} == set(kept)
    assert {path.stem for path in (ROOT / "evidence/figures").iterdir()} == set(kept)


def test_the_names_of_jobs_are_those_of_the_configuration():
    text = (ROOT / "docs/reference/results.md").read_text()
    named = re.findall(r"^\| `(\w+)` \| .+ \| `([\w.-]+)` \|$", text, re.MULTILINE)
    studies = load(read_project(ROOT)).studies
    assert {study for study, _ in named} == {name for name, s in studies.items() if s.trainings()}
    assert [name for study, name in named if name not in studies[study].trainings()] == []


def test_the_first_python_example_of_the_readme_runs_as_typed():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    command = [sys.executable, "-c", blocks[0]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "LayerNorm" in done.stdout
