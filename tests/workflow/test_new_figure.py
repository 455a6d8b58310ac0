"""A figure needs an entry of the registry and a drawing."""

import re
from collections.abc import Iterator

import pytest
from project import Project

STUDY = "src/normscope/studies/main"
ENTRY = """

worst:
  title: The worst run
  category: Loss
  caption: "The greatest loss, {of} all: 'shown' as a \\"point\\"."
  tables: [runs, recall.runs]
  params: {seeds: {config: recall.published.seeds}}
"""
DRAWING = """
from normscope.pages import style


def draw(tables, look, seeds):
    figure, axes = style.canvas(look.width_mm, 40, 1, 1)
    axes[0, 0].plot(tables["runs"]["val_loss"].max(), len(tables["recall.runs"]), "o")
    return figure, f"n: {seeds}."
"""


@pytest.fixture
def project(made: Project) -> Iterator[Project]:
    """The made project with an additional figure."""
    registry = (made.root / STUDY / "figures.yaml").read_text()
    drawing = made.root / STUDY / "figures/worst.py"
    drawing.write_text(DRAWING)
    with made.edited(f"{STUDY}/figures.yaml", registry, registry + ENTRY):
        yield made
    drawing.unlink()


def test_a_new_figure_is_an_entry_and_a_drawing(project: Project):
    planned = project.planned()
    assert planned.keys() == {"figure_worst", "frame", "manifest", "render"}
    plan = project.snakemake("-n", "results/paper/figures/worst.svg")
    (inputs,) = re.findall(r"rule figure_worst:\n +input: (.*)", plan)
    tables = [f"results/{study}/tables/runs.csv" for study in ("main", "recall")]
    assert [path for path in inputs.split(", ") if path.endswith(".csv")] == tables
    project.snakemake("results/paper/figures/worst.svg")
    caption = project.root / "results/paper/figures/worst.txt"
    assert caption.read_text() == ("The greatest loss, {of} all: 'shown' as a \"point\". n: [1].\n")


def test_a_wrong_entry_stops_before_any_job(project: Project):
    with project.edited(f"{STUDY}/figures.yaml", "[runs, recall.runs]", "[rums]"):
        output = project.snakemake("-n", ok=False)
    assert "worst.tables" in output
    assert "mean runs?" in output
    assert "Traceback" not in output
    assert "Job stats" not in output
