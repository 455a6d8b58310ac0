"""What every training script is told, says and writes: flags, progress, timing, tables."""

import csv
import io
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import Field
from tqdm import tqdm

from normscope.errors import Explained
from normscope.io.files import write_bytes, write_text
from normscope.schema import PositiveInt, Strict

LOG_EVERY_S = 5.0


class TrainingFlags(Strict):
    """The flags that every training script has; none of them affects the weights."""

    out: Path = Field(description="directory for models, config, curves and metrics")
    checkpoints: Path = Field(description="directory for checkpoints, this job's alone")
    store: Path | None = Field(default=None, description="where outputs are to be kept")
    timing: Path | None = Field(default=None, description="TSV for the speed of this process")
    checkpoint_every: PositiveInt = Field(
        default=250, description="steps that a kill can cost at most"
    )
    threads: PositiveInt = Field(
        default=1, description="CPU threads; sums in another order differ in bits"
    )


def check_store(store: Path | None) -> None:
    """What will keep the outputs must be writable, before hours of work and not after them.

    Raises:
        Explained: it is not.
    """
    if store is not None and not os.access(store, os.W_OK):
        raise Explained(
            f"{store} cannot be written, and nothing that is made could be kept: make it writable, "
            "or set SNAKEMAKE_OUTPUT_CACHE to a directory that is"
        )


def say(line: str) -> None:
    """A line of the log, past a progress bar if there is one."""
    tqdm.write(line, file=sys.stderr)


class Progress:
    """Step, loss and time left of a job: a bar on a terminal, a line every few seconds in a log.

    Args:
        total: steps, of all models together.
    """

    def __init__(self, total: int) -> None:
        self.total, self.before = total, 0
        self.bar = tqdm(total=total, unit="step", disable=None)  # None: off unless a terminal
        self.began = self.spoke = self.last = time.monotonic()
        self.taken = 0  # by this process: a resumed run has had more
        self.steps: list[float] = []  # seconds of each, one of all models that are in step

    def of(self, models: int) -> Callable[[int, float], None]:
        """Takes (step, training loss) of models in step, after those that are done."""

        def show(step: int, loss: float) -> None:
            now, done = time.monotonic(), self.before + models * step
            self.steps.append(now - self.last)
            self.taken, self.last = self.taken + models, now
            self.bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            self.bar.update(done - self.bar.n)
            if self.bar.disable and (now - self.spoke > LOG_EVERY_S or done == self.total):
                self.spoke = now
                left = (now - self.began) / self.taken * (self.total - done)
                say(f"step {done}/{self.total}  loss {loss:.4f}  {left:.0f} s left")

        return show


def write_timing(path: Path, seconds: float, steps: Sequence[float] = ()) -> None:
    """A TSV row in the manner of Snakemake's benchmark files, which cached rules cannot have.

    Wall and CPU seconds (of the whole process), its steps, median milliseconds of a step.
    """
    step_ms = 1e3 * median(steps) if steps else math.nan
    row = f"{seconds:.1f}\t{time.process_time():.2f}\t{len(steps)}\t{step_ms:.2f}"
    write_text(path, f"s\tcpu_time\tsteps\tms_per_step\n{row}")


def write_rows(path: Path, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """A CSV; a missing or None cell stays empty."""
    table = io.StringIO()
    writer = csv.DictWriter(table, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, table.getvalue().encode())
