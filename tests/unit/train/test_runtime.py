"""Threads, precision and device: set as requested, and their error measured."""

from collections.abc import Iterator

import pytest
import torch

from normscope.errors import Explained
from normscope.train import runtime as module
from normscope.train.runtime import (
    CPU,
    FP32_ERROR,
    Runtime,
    product_error,
    start,
)

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    threads, matmul = torch.get_num_threads(), torch.get_float32_matmul_precision()
    yield
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(matmul)


@pytest.mark.parametrize("threads", [1, 2])
def test_fp32_products_are_fp32(threads):
    """Unit roundoff of fp32 is 2^-24; one of bf16 operands would be off by about 2^-9."""
    runtime = start("fp32", threads)
    assert runtime.threads == torch.get_num_threads() == threads
    assert runtime.matmul == torch.get_float32_matmul_precision()
    assert runtime.matmul in ("medium", "highest")
    assert runtime.error == product_error(torch.float32)
    assert 2**-26 < runtime.error < FP32_ERROR < 2**-12
    assert product_error(torch.float64) == 0


@pytest.mark.parametrize(
    ("asked", "ratio", "used"),
    [("bf16", 0.5, "bf16"), ("bf16", 1.9, "bf16"), ("bf16", 2.1, "fp32"), ("fp32", 0.5, "fp32")],
)
def test_products_are_bf16_where_it_was_asked_for_and_is_not_slow(asked, ratio, used, monkeypatch):
    seconds = {torch.bfloat16: ratio, torch.float32: 1.0}
    monkeypatch.setattr(module, "product_seconds", lambda *types: [seconds[t] for t in types])
    runtime = start(asked, 1)
    assert runtime.precision == runtime.record["precision"] == used
    assert runtime.description.startswith(f"{used} products")
    assert runtime.error == product_error(TYPES[used])
    assert runtime.error < FP32_ERROR if used == "fp32" else 1e-4 < runtime.error < 1e-2
    x = torch.ones(2, 2)
    with runtime.autocast():
        assert (x @ x).dtype == TYPES[used]
    assert (x @ x).dtype == torch.float32


@pytest.mark.parametrize(
    ("version", "reason"),
    [(None, "has no CUDA"), ("13.0", "built for CUDA 13.0, finds no GPU that it can use")],
)
def test_a_gpu_that_torch_cannot_use_is_an_error_that_says_what_to_set(
    version, reason, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", version)
    threads = torch.get_num_threads()
    with pytest.raises(Explained) as e:
        start("fp32", threads + 1, "cuda")
    message = str(e.value)
    assert message.startswith(f"device cuda: torch {torch.__version__} {reason}: set device: ")
    assert "cpu or auto in config.yaml" in message
    assert "\n" not in message
    assert torch.get_num_threads() == threads


def test_the_arithmetic_is_described_and_recorded():
    runtime = start("bf16", 1)
    assert runtime.device == CPU
    assert runtime.description.endswith("; cpu, 1 thread(s)")
    assert runtime.record == {
        "device": "cpu",
        "threads": 1,
        "precision": runtime.precision,
        "matmul": torch.get_float32_matmul_precision(),
        "matmul_error": product_error(TYPES[runtime.precision]),
        "torch": torch.__version__,
    }
    cuda = Runtime("bf16", 2, "highest", 0.5, torch.device("cuda", 1))
    assert cuda.record["device"] == "cuda"  # without its number
    assert cuda.description.endswith("; cuda:1, 2 thread(s)")
