"""The cores and the GPU of this machine."""

import os
import platform
import subprocess
import sys
from pathlib import Path


def usable_cores() -> int:
    """The number of cores that this process may use; the machine may have more."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def chip() -> str:
    """The name of the processor, and the number of usable cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return f"{platform.processor() or platform.machine()}, {usable_cores()} cores"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {usable_cores()} cores"


def has_gpu() -> bool:
    """Whether torch can use a GPU.

    Importing torch takes seconds, so a separate process does it, and only if the machine has an
    NVIDIA driver.
    """
    if not Path("/proc/driver/nvidia/version").exists():
        return False
    question = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", question], check=False).returncode == 0
