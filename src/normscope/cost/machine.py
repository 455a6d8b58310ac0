"""How many cores there are, how fast one is, and whether there is a GPU."""

import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

PROBE_S = 0.25


def usable_cores() -> int:
    """Cores that this process may use, however many the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def chip() -> str:
    """The processor's name, as the kernel has it, and how many cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return f"{platform.processor() or platform.machine()}, {usable_cores()} cores"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {usable_cores()} cores"


def has_gpu() -> bool:
    """Whether torch can use a GPU.

    torch takes seconds to say, so that it is asked, in a process of its own, only where the machine
    has a driver for one.
    """
    if not Path("/proc/driver/nvidia/version").exists():
        return False
    question = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", question], check=False).returncode == 0


def _round() -> None:
    """Half the time products of small float32 matrices, half of it Python itself.

    The products are too small for the threads of a BLAS.
    """
    import numpy as np  # noqa: PLC0415 - a dry run measures nothing, and starts sooner without it

    blocks = np.linspace(-1, 1, 64 * 48 * 48, dtype=np.float32).reshape(64, 48, 48)
    product = np.empty_like(blocks)
    for _ in range(25):
        np.matmul(blocks, blocks, out=product)
    counts = dict.fromkeys(range(97), 0)
    for i in range(60_000):
        counts[i % 97] += i


class Speed(NamedTuple):
    """How fast a core is, as a process sees it.

    Args:
        round_s: CPU seconds of a fixed piece of arithmetic.
        crowding: wall seconds for a CPU second: 1, or more where others keep the cores busy.
    """

    round_s: float
    crowding: float


def probe(seconds: float = PROBE_S) -> Speed:
    """The speed of this machine, by a piece of arithmetic that is repeated for some wall seconds.

    It stands for a job on one core: products as small as those of a small Transformer, and the
    Python around them. A rough guide: it knows nothing of bfloat16 instructions, of caches and
    memory that jobs share, or of a disk, and what keeps the cores busy now may end.
    """
    rounds, wall, cpu = 0, time.perf_counter(), time.thread_time()
    while not rounds or time.perf_counter() - wall < seconds:
        _round()
        rounds += 1
    cpu_s = time.thread_time() - cpu
    return Speed(cpu_s / rounds, max(1.0, (time.perf_counter() - wall) / cpu_s))
