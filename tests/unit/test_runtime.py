"""How arithmetic runs: set as asked, and measured."""

from collections.abc import Iterator

import pytest
import torch

from normscope.train.runtime import FP32_ERROR, product_error, start


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    threads, matmul = torch.get_num_threads(), torch.get_float32_matmul_precision()
    yield
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(matmul)


def test_fp32_products_are_fp32():
    """Unit roundoff of fp32 is 2^-24; one of bf16 operands would be off by about 2^-9."""
    runtime = start("fp32", 1)
    assert runtime.matmul in ("medium", "highest")
    assert torch.get_float32_matmul_precision() == runtime.matmul
    assert runtime.error == product_error(torch.float32)
    assert 2**-26 < runtime.error < FP32_ERROR < 2**-12


def test_bf16_products_have_bf16_operands():
    runtime = start("bf16", 1)
    assert 1e-4 < runtime.error < 1e-2
    assert runtime.error == product_error(torch.bfloat16)


def test_fp64_products_are_exact_beside_them():
    assert product_error(torch.float64) == 0


@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_autocast_sets_the_operands_of_products(precision, dtype):
    x = torch.ones(2, 2)
    with start(precision, 1).autocast():
        assert (x @ x).dtype == dtype
    assert (x @ x).dtype == torch.float32


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_as_asked(threads):
    assert start("fp32", threads).threads == torch.get_num_threads() == threads
