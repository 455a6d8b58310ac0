"""Distribution of tests over the processes of `make test`."""

import gc

import pytest
from xdist.scheduler import LoadScopeScheduling


class ByFile(LoadScopeScheduling):
    """Tests of workflow/ share a project and run in one process; other files run in any.

    The marks of ``--dist loadgroup`` do nothing: xdist 3.8 writes them where pytest 9.2 reads none.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "workflow" if "workflow/" in file else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log) -> ByFile:
    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of workflow/ first, which take longest."""
    items.sort(key=lambda item: item.path.parent.name != "workflow")


def pytest_collection_finish() -> None:
    """Freeze existing objects, because statsmodels collects garbage at each call."""
    gc.collect()
    gc.freeze()
