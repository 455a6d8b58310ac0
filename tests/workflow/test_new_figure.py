"""A figure is an entry of the registry and a drawing, and nothing else."""

import re
from contextlib import ExitStack

import pytest
from project import Project, fresh

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
from normscope.paper import style


def draw(tables, look, seeds):
    figure, axes = style.canvas(look.width_mm, 40, 1, 1)
    axes[0, 0].plot(tables["runs"]["val_loss"].max(), len(tables["recall.runs"]), "o")
    return figure, f"n: {seeds}."
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """One with a figure more."""
    project = fresh(tmp_path_factory.mktemp("figures") / "project")
    registry = project.root / STUDY / "figures.yaml"
    registry.write_text(registry.read_text() + ENTRY)
    (project.root / STUDY / "figures/worst.py").write_text(DRAWING)
    return project


def test_a_new_figure_is_an_entry_and_a_drawing(project: Project):
    assert project.planned()["figure_worst"] == 1
    plan = project.snakemake("-n", "-p", "results/paper/figures/worst.svg")
    (job,) = re.findall(r"rule figure_worst:\n((?: +.*\n)+)", plan)
    (inputs,) = re.findall(r"input: (.*)", job)
    tables = [f"results/{study}/tables/runs.csv" for study in ("main", "recall")]
    assert [path for path in inputs.split(", ") if path.endswith(".csv")] == tables
    assert "results/paper/figures/worst.pdf" in job
    # and the page that shows it waits for it
    assert project.planned("results/paper/frame.json")["figure_worst"] == 1


def test_a_figure_is_drawn_again_for_its_own_reasons_alone(project: Project):
    """By what it is drawn of: its tables, its code, its words."""
    tables = [f"results/{study}/tables/runs.csv" for study in ("main", "recall")]
    for path in tables:
        table = project.root / path
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text("val_loss\n1.5\n2.5\n")
    alone = ("results/paper/figures/worst.svg", "--allowed-rules", "figure_worst")
    project.snakemake(*alone)
    caption = project.root / "results/paper/figures/worst.txt"
    assert caption.read_text() == ("The greatest loss, {of} all: 'shown' as a \"point\". n: [1].\n")

    def wanted() -> bool:
        return "figure_worst" in project.planned(*alone)

    worst, registry = (
        "src/normscope/studies/main/figures/worst.py",
        "src/normscope/studies/main/figures.yaml",
    )
    needless = [
        (worst, "\ndef draw", "\n# draws\ndef draw"),
        (f"{STUDY}/figures/loss.py", "LINEAR = 0.1 ", "LINEAR = 0.2 "),
        (registry, "Validation loss of the", "The loss of the"),
    ]
    with ExitStack() as edits:
        for edit in needless:
            edits.enter_context(project.edited(*edit))
        assert not wanted()
    needed = [
        (worst, '"o"', '"x"'),
        (registry, "The greatest loss", "The largest loss"),
        (registry, "recall.published.seeds}", "recall.corrected.task}"),
    ]
    for edit in needed:
        with project.edited(*edit):
            assert wanted(), edit


def test_a_wrong_entry_stops_before_any_job(project: Project):
    with project.edited(f"{STUDY}/figures.yaml", "[runs, recall.runs]", "[rums]"):
        output = project.snakemake("-n", ok=False)
    assert "worst.tables" in output
    assert "mean runs?" in output
    assert "Traceback" not in output
    assert "Job stats" not in output
