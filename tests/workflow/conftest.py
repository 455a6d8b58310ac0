"""Projects that tests share: made once, edited and restored."""

import re

import pytest
from project import Project, fresh


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose workflow ran once. Tests that edit it take their edits back."""
    project = fresh(tmp_path_factory.mktemp("made") / "project")
    project.snakemake()
    return project


@pytest.fixture(scope="session")
def diverged(made: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The made project with a bound at which every training diverges, up to the summary."""
    project = made.copy(tmp_path_factory.mktemp("diverged") / "project")
    config = project.root / "config.yaml"
    text = re.sub(r"loss_bound: [\d.]+", "loss_bound: 0.01", config.read_text())
    text = re.sub(r"( +)kind: (copy|recall)\n", r"\1kind: \2\n\1loss_bound: 0.01\n", text)
    config.write_text(text)
    project.snakemake("results/paper/summary.md")
    return project
