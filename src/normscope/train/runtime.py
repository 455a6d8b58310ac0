"""Threads, allocator, device and precision of a process."""

import ctypes
import math
import os
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

import torch

from normscope.errors import Explained

# an fp32 product of 512 terms is off by about 2e-7; a silent bf16 product by about 2e-3
FP32_ERROR = 2e-6
# bf16 products take half as long as fp32 ones on CPUs with such instructions, else 15 to 70 times
SLOW = 2
ROUNDS = 10

CPU = torch.device("cpu")

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # glibc's malloc.h


@dataclass(frozen=True)
class Runtime:
    """The settings of a process, and the measured error of its matrix products.

    Args:
        precision: Of products in training, which is fp32 where bf16 would be slower.
        matmul: torch's float32 matmul precision setting.
        error: The relative Frobenius error of a product in this precision against float64.
    """

    precision: Literal["fp32", "bf16"]
    threads: int
    matmul: str
    error: float
    device: torch.device = CPU

    def autocast(self) -> AbstractContextManager:
        """The context of a training forward pass."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    @property
    def description(self) -> str:
        """A line for a log."""
        return (
            f"{self.precision} products (float32 setting {self.matmul}) are off by "
            f"{self.error:.1e} against float64; {self.device}, {self.threads} thread(s)"
        )

    @property
    def record(self) -> dict[str, str | int | float]:
        """What config.json records of the arithmetic."""
        return {
            "device": self.device.type,
            "threads": self.threads,
            "precision": self.precision,
            "matmul": self.matmul,
            "matmul_error": self.error,
            "torch": torch.__version__,
        }


def keep_freed_memory() -> None:
    """Let malloc keep large freed blocks, so that a step does not map its buffers again.

    Otherwise page faults take a third of a step at nanoGPT's CPU sizes. Only glibc's allocator is
    changed.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "gnu_get_libc_version"):
        libc.mallopt(M_MMAP_THRESHOLD, 32 << 20)
        libc.mallopt(M_TRIM_THRESHOLD, 1 << 30)
        libc.mallopt(M_TOP_PAD, 64 << 20)


def _factors() -> tuple[torch.Tensor, torch.Tensor]:
    """Matrices of (256, 512) and (512, 256), in float64."""
    g = torch.Generator().manual_seed(0)
    a, b = (torch.randn(s, generator=g, dtype=torch.float64) for s in ((256, 512), (512, 256)))
    return a, b


def product_seconds(*dtypes: torch.dtype) -> list[float]:
    """Seconds of the product of ``_factors`` on the CPU in each of ``dtypes``.

    Each is the least of ``ROUNDS``. The types take turns, so that the machine's other load slows
    all of them.
    """
    factors = [[factor.to(dtype) for factor in _factors()] for dtype in dtypes]
    seconds = [math.inf] * len(dtypes)
    for _ in range(ROUNDS):
        for i, (a, b) in enumerate(factors):
            began = time.perf_counter()
            _ = a @ b
            seconds[i] = min(seconds[i], time.perf_counter() - began)
    return seconds


def product_error(dtype: torch.dtype, device: torch.device = CPU) -> float:
    """Relative Frobenius error of the product of ``_factors`` in ``dtype``."""
    a, b = _factors()
    exact, product = a @ b, a.to(device, dtype) @ b.to(device, dtype)
    return float((product.double().cpu() - exact).norm() / exact.norm())


def _cuda() -> torch.device:
    """The GPU, with deterministic algorithms where torch has them."""
    if not torch.cuda.is_available():
        built = torch.version.cuda
        reason = f"built for CUDA {built}, finds no GPU that it can use" if built else "has no CUDA"
        raise Explained(
            f"device cuda: torch {torch.__version__} {reason}: set device: cpu or auto in "
            "config.yaml, or install a torch that fits the GPU's driver"
        )
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # for a fixed order of sums
    torch.use_deterministic_algorithms(True, warn_only=True)  # warns of exceptions
    return torch.device("cuda")


def start(
    precision: Literal["fp32", "bf16"],
    threads: int,
    device: Literal["cpu", "cuda"] = "cpu",
    *,
    keep_memory: bool = True,
) -> Runtime:
    """Set threads, allocator and matrix products of a process, and measure the products' error.

    torch's setting "medium" sends fp32 products to oneDNN, which is twice as fast as the default
    on AMD chips with AVX-512. On chips with AMX "medium" means bf16 operands, and on a GPU TF32: if
    the measured error shows this, the setting becomes "highest". ``precision="bf16"`` means
    autocast: branches and logits in bf16, with products accumulated in fp32. It becomes "fp32" on a
    CPU on which bf16 products are measured to be more than ``SLOW`` times slower. With
    ``keep_memory``, up to 1 GB of freed memory stays with the process.
    """
    at = _cuda() if device == "cuda" else CPU
    torch.set_num_threads(threads)
    if keep_memory:
        keep_freed_memory()
    torch.set_float32_matmul_precision("medium")
    if product_error(torch.float32, at) > FP32_ERROR:
        torch.set_float32_matmul_precision("highest")
    if at == CPU and precision == "bf16":
        bf16, fp32 = product_seconds(torch.bfloat16, torch.float32)
        precision = "fp32" if bf16 > SLOW * fp32 else "bf16"
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    matmul = torch.get_float32_matmul_precision()
    return Runtime(precision, threads, matmul, product_error(dtype, at), at)
