"""Progress of a run: its expected time at the start, and the remaining time after each job."""

import re
from collections.abc import Iterator

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


@pytest.fixture
def expensive(made: Project) -> Iterator[None]:
    """Every job is expected to take ten hours."""
    path = made.root / "workflow/costs.yaml"
    before = path.read_text()
    path.write_text(re.sub(r"[\d.]+\]", "36000]", before))
    yield
    path.write_text(before)


@pytest.mark.usefixtures("expensive")
def test_a_run_says_its_jobs_and_what_is_left(undrawn: Project):
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


@pytest.mark.usefixtures("expensive")
def test_what_the_store_has_takes_no_time(made: Project):
    path = next((made.root / "results/recall/models").iterdir())
    for link in path.iterdir():
        link.unlink()
    text = made.snakemake(str(path.relative_to(made.root) / "config.json"))
    assert START.findall(text) == [("1 job", "a few seconds")]
