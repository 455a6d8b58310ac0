"""The order of tests in `make test`, which gives files to two processes as they become free."""

import gc

import pytest

FIRST = "test_engines.py"  # it makes the project that the other tests of workflow/ copy


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the other tests of workflow/ last, so that none waits for the project."""
    items.sort(key=lambda i: (i.path.name != FIRST, i.path.parent.name == "workflow"))


def pytest_collection_finish() -> None:
    """Freeze existing objects, because statsmodels collects garbage at each call."""
    gc.collect()
    gc.freeze()
