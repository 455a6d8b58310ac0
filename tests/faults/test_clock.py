"""A clock that was set back or forward: contents decide, and no job runs forever."""

import os
import time
from pathlib import Path

import pytest
from cases import TARGETS, same
from project import Project

DAY = 86_400


def shift(folder: Path, seconds: float) -> None:
    """Shift the modification times in a folder, as a wrong clock would have set them."""
    now = time.time() + seconds
    for path in folder.rglob("*"):
        os.utime(path, (now, now), follow_symlinks=False)


@pytest.mark.parametrize("days", [1, -1])
def test_clock(modelled: Project, tmp_path: Path, days: int):
    project = modelled.copy(tmp_path / "project")
    # what the first part of a run made has the old clock's times, the rest the new one's
    shift(project.root / "results", days * DAY)
    shift(project.root / "store", days * DAY)
    (project.root / "results/main/tables/arms.csv").unlink()
    (project.root / "results/paper/figures/loss.svg").unlink()
    project.snakemake(*TARGETS)
    same(project, modelled)
    assert project.planned(*TARGETS) == {}
