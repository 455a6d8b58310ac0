"""How tests are spread over processes: `make test` has two."""

import gc

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those of workflow/ share a project: one process, from the start; else a file is one's."""
    items.sort(key=lambda item: item.path.parent.name != "workflow")
    for item in items:
        folder, name = item.path.parent.name, item.path.name
        item.add_marker(pytest.mark.xdist_group(folder if folder == "workflow" else name))


def pytest_collection_finish() -> None:
    """What is there before the first test stays: statsmodels collects garbage at each call."""
    gc.collect()
    gc.freeze()
