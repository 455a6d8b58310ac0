"""The cores and the GPU of this machine, and the CPU time of a run on it."""

import csv
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from normscope.studies.study import Study


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
    """Whether the machine has an NVIDIA driver, and torch can use a GPU."""
    return Path("/proc/driver/nvidia/version").exists() and torch_finds_gpu()


def torch_finds_gpu() -> bool:
    """Whether torch can use a GPU. Its import takes seconds, so a separate process does it."""
    question = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", question], check=False).returncode == 0


def run_record(study: Study, results: Path) -> dict[str, Any]:
    """Chip, date and core-hours of a study, on the machine that made them.

    Args:
        results: The folder of the run, with ``benchmarks/<rule>/<job>.tsv`` of every job that ran.
    """
    jobs = [f"{study.name}_tables"]
    jobs += [f"{study.name}_train/{name}" for name in study.trainings()]
    jobs += [f"{study.name}_probe/{name}" for name in study.probes()]
    seconds = [_cpu_seconds(results / "benchmarks" / f"{job}.tsv") for job in jobs]
    made = max(path.stat().st_mtime for path in (results / study.name / "tables").iterdir())
    return {
        "chip": chip(),
        "date": f"{datetime.fromtimestamp(made, UTC):%Y-%m-%d}",
        "core_hours": round(sum(filter(None, seconds)) / 3600, 4),
        "unmeasured_jobs": seconds.count(None),
    }


def _cpu_seconds(benchmark: Path) -> float | None:
    """The CPU time of a job; None if the job was killed, or its result came from the store."""
    try:
        with benchmark.open() as file:
            return float(next(csv.DictReader(file, delimiter="\t"))["cpu_time"])
    except (StopIteration, KeyError, TypeError, ValueError, OSError):
        return None
