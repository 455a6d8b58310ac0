"""Training a job outside of the workflow, with the same script and the same threads."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from normscope.errors import Explained
from normscope.io.texts import text_folder

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class SingleJob(NamedTuple):
    """A training job.

    Args:
        study: The study that trains it.
        name: The name of the job.
        text: The text that its models learn.
        recipe: What it trains, as JSON.
    """

    study: str
    name: str
    text: str
    recipe: str


def train_single(job: SingleJob, dataset: Path, out: Path) -> Path:
    """Train a job, or continue it, and return the path of its metrics.csv.

    Args:
        out: The folder for its models. A job whose metrics are there is not trained again.
    """
    metrics = out / "metrics.csv"
    if metrics.exists():
        return metrics
    command = [sys.executable, "scripts/train.py", job.study, "--recipe", job.recipe]
    command += ["--data", str(text_folder(dataset, job.text)), "--out", str(out)]
    command += ["--checkpoints", str(out / "checkpoints")]
    env = os.environ | ONE_THREAD
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Explained(f"{job.study}/{job.name} cannot be trained:\n{done.stderr}")
    return metrics
