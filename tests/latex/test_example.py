"""The files for LaTeX, compiled with all tables and figures. Needs pdflatex."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import page_recipes as recipes
from processes import need

from normscope.io.files import write_text
from normscope.pages.latex import latex_files

ROOT = Path(__file__).parents[2]
PAPER = Path(os.environ.get("NORMSCOPE_PAPER", ROOT / "results" / "paper"))
COMMAND = "pdflatex -interaction=nonstopmode -halt-on-error -no-shell-escape".split()


def compile_example(place: Path, name: str) -> str:
    """The log of the second of two runs, without its line breaks."""
    need(shutil.which("pdflatex"), "pdflatex is not installed")
    log = ""
    for _ in range(2):
        done = subprocess.run([*COMMAND, name], cwd=place, capture_output=True, check=False)
        log = (place / name).with_suffix(".log").read_text(errors="replace").replace("\n", "")
        assert done.returncode == 0, log[-3000:]
    assert "undefined" not in log
    return log


def with_everything(place: Path) -> Path:
    """The example with all tables and figures."""
    tables = [path.relative_to(place) for path in sorted(place.rglob("tables/**/*.tex"))]
    figures = [path.relative_to(place) for path in sorted(place.glob("figures/*.pdf"))]
    head = (place / "example.tex").read_text().partition(r"\begin{document}")[0]
    body = [rf"\input{{{path.with_suffix('')}}}" for path in [*tables, Path("claims.tex")]]
    body += [rf"\includegraphics[width=\textwidth]{{{path}}}" for path in figures]
    document = [rf"{head}\begin{{document}}\raggedright", *body, r"\end{document}"]
    (place / "all.tex").write_text("\n\n".join(document))
    return place / "all.tex"


def test_the_example_and_everything_compile(tmp_path):
    need((PAPER / "example.tex").is_file(), f"{PAPER}/example.tex is missing: run the workflow")
    place = tmp_path / "paper"
    shutil.copytree(PAPER, place, ignore=shutil.ignore_patterns("*.json", "*.md", "*.html"))
    log = compile_example(place, "example.tex")
    assert "./numbers.tex" in log
    assert "./claims.tex" in log
    log = compile_example(place, with_everything(place).name)
    for path in [*place.rglob("tables/**/*.tex"), *place.glob("figures/*.pdf")]:
        assert str(path.relative_to(place)) in log


def test_a_hostile_frame_compiles_and_runs_nothing(tmp_path):
    texts = [t for t in recipes.HOSTILE_TEX if t.isascii()]  # others need another engine
    for name, text in latex_files(recipes.frame(*texts), recipes.REPORT).items():
        write_text(tmp_path / name, text)
    log = compile_example(tmp_path, with_everything(tmp_path).name)
    assert "/etc/passwd" not in log
    assert not (tmp_path / "owned").exists()
    if shutil.which("pdftotext"):
        run = ["pdftotext", "-raw", "all.pdf", "-"]
        text = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert re.sub(r"\s", "", r"\input{/etc/passwd} \write18{touch owned}") in re.sub(
            r"[\s-]", "", text
        )
        assert "root:x" not in text
