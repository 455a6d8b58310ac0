"""Progress of a run: its expected time at the start, and the remaining time after each job."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from project import Project

START = re.compile(r"^(\d+ jobs?), (.+) on \d+ cores?\b", re.MULTILINE)
LEFT = re.compile(r"^\[[#-]{20}\] +(\d+)% of the work, .+ left$", re.MULTILINE)
FIGURES = ("figure_loss", "figure_curves")


@pytest.fixture
def undrawn(made: Project) -> Iterator[Project]:
    """The made project without two of its figures, which are restored at the end."""
    folder = made.root / "results/paper/figures"
    paths = [folder / f"{name.removeprefix('figure_')}.svg" for name in FIGURES]
    drawings = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    yield made
    for path, drawing in zip(paths, drawings, strict=True):
        path.write_bytes(drawing)


def planted(project: Project, path: str, seconds: float) -> Path:
    """A benchmark file of a job that took this many seconds."""
    file = project.root / "results/benchmarks" / path
    file.write_text(f"s\tcpu_time\n{seconds}\t{seconds}\n")
    os.utime(file, (0, 0))
    return file


def test_a_run_prints_its_jobs_and_the_remaining_time(undrawn: Project):
    planted(undrawn, "figures/loss.tsv", 36_000)
    planted(undrawn, "figures/curves.tsv", 36_000)
    text = undrawn.snakemake(*FIGURES)
    ((jobs, time),) = START.findall(text)
    assert jobs == "2 jobs"
    assert "hours" in time or "days" in time  # 10 hours each, where nothing else runs
    assert LEFT.findall(text) == ["50"]
    text = undrawn.snakemake(*FIGURES)
    assert "Nothing to be done" in text
    assert not START.findall(text)


@pytest.mark.parametrize(
    "flags", [("-n",), ("--touch",), ("--quiet", "progress"), ("--quiet", "all")]
)
def test_some_runs_print_no_times(undrawn: Project, flags: tuple[str, ...]):
    text = undrawn.snakemake(*FIGURES, *flags)
    assert not START.findall(text)
    assert not LEFT.findall(text)


def test_stored_results_take_no_time(made: Project):
    path = next((made.root / "results/recall/models").iterdir())
    planted(made, f"recall_train/{path.name}.tsv", 36_000)
    for link in path.iterdir():
        link.unlink()
    text = made.snakemake(str(path.relative_to(made.root) / "config.json"))
    assert START.findall(text) == [("1 job", "a few seconds")]
