"""A touched file reruns nothing, and a new arm reruns only what shows it."""

import re
from pathlib import Path

from project import Project


def test_touching_every_file_reruns_nothing(made: Project):
    for path in made.root.rglob("*"):
        if path.is_file() and not {".git", ".snakemake"} & set(path.parts):
            path.touch()
    assert made.planned() == {}


def test_a_new_arm_needs_one_row_and_one_word_of_configuration(made: Project, tmp_path: Path):
    project = made.copy(tmp_path / "project")
    last = '    Row("none",'
    row = '    Row("half", "Half affine", BA16, _token(center=True, bias=True, eps=1e-4)),\n'
    paper = project.root / "results" / "paper"
    with (
        project.edited("src/normscope/nn/arms.py", last, row + last),
        project.edited("config.yaml", "- layernorm\n", "- layernorm\n  - half\n"),
    ):
        planned = project.planned()
        assert (planned["main_train"], planned["main_probe"]) == (1, 1)  # of two seeds
        figures = ("loss", "curves", "gain")
        made_now = [f"results/paper/figures/{figure}.svg" for figure in figures]
        project.snakemake("main", *made_now)
        for figure in figures:
            assert "Half affine" in (paper / "figures" / f"{figure}.svg").read_text(), figure
            assert "Half affine pre" in (paper / "figures" / f"{figure}.txt").read_text(), figure
        for table in ("runs", "chosen", "curves", "arms", "gain", "gain_by_depth", "gain_by_arm"):
            path = project.root / "results/main/tables" / f"{table}.csv"
            assert re.search(r"^nanogpt,half,pre,", path.read_text(), re.MULTILINE), table
    assert "main_train" not in project.planned()
