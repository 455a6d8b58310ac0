"""What every training script is told, prints and records: flags, progress, timing."""

import math
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from pydantic import Field

from normscope.errors import Explained
from normscope.io.files import write_text
from normscope.schema import PositiveInt, Strict

LOG_EVERY_S = 5.0


class TrainingFlags(Strict):
    """Flags of every training script; only ``threads`` affects the weights."""

    out: Path = Field(description="directory for models, config, curves and metrics")
    checkpoints: Path = Field(description="directory for the checkpoints of this job")
    store: Path | None = Field(default=None, description="directory that will keep the outputs")
    timing: Path | None = Field(default=None, description="TSV for the speed of this process")
    checkpoint_every: PositiveInt = Field(default=250, description="steps between checkpoints")
    threads: PositiveInt = Field(
        default=1, description="CPU threads; they decide the order of sums"
    )


def check_store(store: Path | None) -> None:
    """Check that the store can be written before hours of work, not after them."""
    if store is not None and not os.access(store, os.W_OK):
        raise Explained(
            f"{store} cannot be written, and nothing that is made could be kept: make it writable, "
            "or set SNAKEMAKE_OUTPUT_CACHE to a directory that is"
        )


def log(line: str) -> None:
    """Print a line to the log."""
    print(line, file=sys.stderr, flush=True)


class Progress:
    """Prints the step, loss and remaining time of a job every few seconds."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.finished = 0  # steps of the stacks that have ended
        self.taken = 0  # steps of this process; a resumed job has taken more
        self.seconds: list[float] = []  # of each step, which all models of a stack take together
        self.began = self.printed = self.last = time.monotonic()

    def show(self, models: int, step: int, loss: float) -> None:
        """Note that a stack of models has taken a step (counted from 1)."""
        now, done = time.monotonic(), self.finished + models * step
        self.seconds.append(now - self.last)
        self.taken, self.last = self.taken + models, now
        if now - self.printed > LOG_EVERY_S or done == self.total:
            self.printed = now
            left = (now - self.began) / self.taken * (self.total - done)
            log(f"step {done}/{self.total}  loss {loss:.4f}  {left:.0f} s left")


def write_timing(path: Path, seconds: float, steps: Sequence[float] = ()) -> None:
    """Write a TSV like Snakemake's benchmark files, which cached rules cannot have.

    Columns: wall and CPU seconds of the process, its steps, and the median milliseconds per step.
    """
    step_ms = 1e3 * median(steps) if steps else math.nan
    row = f"{seconds:.1f}\t{time.process_time():.2f}\t{len(steps)}\t{step_ms:.2f}"
    write_text(path, f"s\tcpu_time\tsteps\tms_per_step\n{row}")
