"""Projects that tests share: they are made once, and tests restore what they edit."""

import csv
import io
import os

import pytest
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
def dag(made: Project) -> list[dict[str, str]]:
    """Every output with its rule, inputs and shell command, as Snakemake lists them."""
    text = made.snakemake("--detailed-summary")
    table = "\n".join(line for line in text.splitlines() if "\t" in line)
    return list(csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE))
