"""The order of tests; `make test` gives files to two processes as they become free."""

import gc

import pytest

# test_dag makes the project that other tests of workflow/ copy; test_hostile_config is long and
# needs none; test_dvc records a project that no other test has changed
FIRST = ("test_dag.py", "test_hostile_config.py", "test_dvc.py")

gc.disable()  # until the tests begin: imports make objects that live


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the other tests of workflow/ last, so that none waits for the project."""
    items.sort(key=lambda i: (i.path.name not in FIRST, i.path.parent.name == "workflow"))


def pytest_collection_finish() -> None:
    """Freeze existing objects, because statsmodels collects garbage at each call."""
    gc.collect()
    gc.freeze()
    gc.enable()
