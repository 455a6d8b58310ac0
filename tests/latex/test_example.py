"""The files for LaTeX, compiled: no warning, all tables, all figures. Needs pdflatex."""

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import page_recipes as recipes
from needed import need

from normscope.io.files import write_text
from normscope.pages.frame import Frame
from normscope.pages.latex import files
from normscope.pages.typeset import pdf

ROOT = Path(__file__).parents[2]
PAPER = Path(os.environ.get("NORMSCOPE_PAPER", ROOT / "results" / "paper"))
COMMAND = "pdflatex -interaction=nonstopmode -halt-on-error -no-shell-escape example.tex".split()


def compiled(place: Path) -> str:
    """The log of the last of four runs, without its line breaks."""
    need(shutil.which("pdflatex"), "pdflatex is not installed")
    log = ""
    for _ in range(4):
        done = subprocess.run(COMMAND, cwd=place, capture_output=True, check=False)
        log = (place / "example.log").read_text(errors="replace")
        assert done.returncode == 0, log[-3000:]
    return log


def warnings(log: str) -> list[str]:
    return [line for line in log.splitlines() if re.search("Warning|Overfull|Underfull", line)]


def test_the_example_compiles_without_a_warning_and_shows_everything(tmp_path):
    need((PAPER / "example.tex").is_file(), f"{PAPER}/example.tex is missing: run the workflow")
    place = tmp_path / "paper"
    shutil.copytree(PAPER, place, ignore=shutil.ignore_patterns("*.json", "*.md", "*.html"))
    log = compiled(place)
    assert warnings(log) == []
    joined = log.replace("\n", "")
    for path in sorted((place / "figures").glob("*.pdf")):
        assert f"figures/{path.name}" in joined, path
    for path in ("numbers.tex", "claims.tex", *(str(p.relative_to(place)) for p in tables(place))):
        assert f"./{path}" in joined, path


def tables(place: Path) -> list[Path]:
    return sorted((place / "tables").rglob("*.tex"))


def test_a_hostile_frame_compiles_without_a_warning_and_runs_nothing(tmp_path):
    printed = replace(recipes.frame(*recipes.HOSTILE_TEX), words={"demonstration": True})
    for name, text in files(printed, recipes.LATEX).items():
        write_text(tmp_path / name, text)
    (tmp_path / "figures").mkdir()
    blank = pdf("#set page(width: 90mm, height: 9mm)", "", Frame({}, {}, {}, {}, {}), {})
    for name in ("loss", "final_norm", "forest"):
        (tmp_path / "figures" / f"{name}.pdf").write_bytes(blank)
    log = compiled(tmp_path)
    assert warnings(log) == []
    assert "/etc/passwd" not in log
    assert not (tmp_path / "owned").exists()
    if shutil.which("pdftotext"):
        run = ["pdftotext", "-layout", "example.pdf", "-"]
        text = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert "[U+6A21]" in text
        assert "root:x" not in text
