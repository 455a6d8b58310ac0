"""Distribution of tests over the processes of `make test`, and selection of a part."""

import gc

import pytest
from suites import part_of
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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="1/1", help="K/N: the K-th of N parts of the tests")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select one part of the tests; those of workflow/, which take longest, run first."""
    chosen = part_of([item.nodeid for item in items], str(config.getoption("part")))
    items[:] = [item for item in items if item.nodeid in chosen]
    items.sort(key=lambda item: item.path.parent.name != "workflow")


def pytest_collection_finish() -> None:
    """Freeze existing objects, because statsmodels collects garbage at each call."""
    gc.collect()
    gc.freeze()
