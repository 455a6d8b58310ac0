"""Content decides what runs again, for each input in test_matrix.py; a new norm is a row."""

import re
from pathlib import Path

import yaml
from dryruns import DryRun
from project import Project
from table import changed


def test_touching_every_file_reruns_nothing(made: Project):
    for path in made.root.rglob("*"):
        if path.is_file() and not {".git", ".snakemake"} & set(path.parts):
            path.touch()
    assert made.planned() == {}


def test_a_seed_beyond_full_jobs_is_one_training_and_one_probe(made: Project):
    """Of four seeds, three to a job."""
    config = yaml.safe_load((made.root / "config.yaml").read_text())
    waiting = DryRun(made.root, made.env, "config")
    first, more = (
        waiting.plan(changed(config, {"stack": 3, "runs.0.seeds": seeds}))
        for seeds in ([1, 2, 3], [1, 2, 3, 4])
    )
    new = more.needs.keys() - first.needs.keys()
    assert new == {
        "main_train nanogpt-layernorm-pre-0.001-4",
        "main_probe nanogpt-layernorm-pre-0.001-4",
    }
    other = {job for job, by in first.decided_by.items() if more.decided_by[job] != by}
    assert {"main_tables", "textbook_tables"} <= other
    assert not [job for job in other if re.match(r"\w+_(train|probe) ", job)]


def test_a_new_norm_is_one_row_and_one_word(made: Project, tmp_path: Path):
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
