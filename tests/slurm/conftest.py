"""A Slurm cluster of one node, started and stopped for these tests, which need root."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

CLUSTER = Path(__file__).parent / "cluster"


@pytest.fixture(scope="session", autouse=True)
def cluster() -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.fail("only root can start a Slurm")
    try:
        started = subprocess.run([CLUSTER, "start"], capture_output=True, text=True, check=False)
        if started.returncode:
            pytest.fail(f"no Slurm: {started.stdout}{started.stderr}")
        yield
    finally:
        if os.geteuid() == 0:
            subprocess.run([CLUSTER, "stop"], check=True)
