"""Projects that tests share: they are made once, and tests restore what they edit."""

import csv
import io

import pytest
from project import Project, fresh, once


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose whole workflow ran. Tests that edit it restore it."""
    return once(tmp_path_factory, "made", lambda root: fresh(root).snakemake())


@pytest.fixture(scope="session")
def dag(made: Project) -> list[dict[str, str]]:
    """Every output with its rule, inputs and shell command, as Snakemake lists them."""
    text = made.snakemake("--detailed-summary")
    table = "\n".join(line for line in text.splitlines() if "\t" in line)
    return list(csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE))
