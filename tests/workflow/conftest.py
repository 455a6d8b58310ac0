"""Projects that tests share: they are made once, and tests restore what they edit."""

import csv
import io
import os

import pytest
import yaml
from project import Project, fresh

from normscope.locks import lock


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose workflow ran once. Tests that edit it restore it.

    If several processes run tests, one of them makes it, and each has a copy.
    """
    folder = tmp_path_factory.getbasetemp()
    first = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "first"
    done = first.with_suffix(".done")
    with first.with_suffix(".lock").open("a") as file:
        lock(file)
        if not done.exists():
            fresh(first).snakemake()
            done.touch()
    return Project(first).copy(tmp_path_factory.mktemp("made") / "project")


@pytest.fixture(scope="session")
def recorded(made: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of the made project, as its user has recorded it with DVC and committed it."""
    project = made.copy(tmp_path_factory.mktemp("recorded") / "project")
    for key, value in {"name": "test", "email": "test@example.org"}.items():
        project.run("git", "config", f"user.{key}", value)
    project.run("dvc", "repro")
    project.run("git", "add", "metrics")
    project.run("git", "commit", "--all", "--quiet", "--message", "as made")
    return project


@pytest.fixture(scope="session")
def diverged(made: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The made project with a loss bound at which every training diverges, up to the summary."""
    project = made.copy(tmp_path_factory.mktemp("diverged") / "project")
    config = yaml.safe_load((project.root / "config.yaml").read_text())
    trainings = [protocol["training"] for protocol in config["jacobian"]["protocols"].values()]
    for part in (
        config["main"]["protocols"]["nanogpt"]["training"],
        *config["recall"]["tasks"].values(),
        *trainings,
    ):
        part["loss_bound"] = 0.01
    config["main"]["runs"] = config["main"]["runs"][:1]
    (project.root / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    project.snakemake("results/paper/summary.md")
    return project


@pytest.fixture(scope="session")
def dag(made: Project) -> list[dict[str, str]]:
    """Every output with its rule, inputs and shell command, as Snakemake lists them."""
    text = made.snakemake("--detailed-summary")
    table = "\n".join(line for line in text.splitlines() if "\t" in line)
    return list(csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE))
