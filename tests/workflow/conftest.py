"""One project for all tests: made once, edited and restored."""

import pytest
from project import Project, fresh


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose workflow ran once. Tests that edit it take their edits back."""
    project = fresh(tmp_path_factory.mktemp("made") / "project")
    project.snakemake()
    return project
