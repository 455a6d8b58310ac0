"""What every training script is told, says and writes: flags, progress, the files of a run."""

import csv
import io
import math
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import safetensors.torch
from pydantic import Field
from torch import nn
from tqdm import tqdm

from normscope.errors import Explained
from normscope.io.files import write_bytes, write_json, write_sums, write_text
from normscope.schema import PositiveInt, Strict

LOG_EVERY_S = 5.0


class TrainingFlags(Strict):
    """What every training script is told beside the run itself; none of it decides the weights."""

    out: Path = Field(description="directory for model, config, curve and metrics")
    checkpoints: Path = Field(description="directory for checkpoints, this run's alone")
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
    """Step, loss and time left: a bar on a terminal, a line every few seconds in a log."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.bar = tqdm(total=total, unit="step", disable=None)  # None: off unless a terminal
        self.began = self.spoke = time.monotonic()
        self.last = self.began
        self.steps: list[float] = []  # seconds of each, of this process: a resumed run has had more

    def __call__(self, step: int, loss: float) -> None:
        now = time.monotonic()
        self.steps.append(now - self.last)
        self.last = now
        self.bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
        self.bar.update(step - self.bar.n)
        if self.bar.disable and (now - self.spoke > LOG_EVERY_S or step == self.total):
            self.spoke = now
            left = (now - self.began) / len(self.steps) * (self.total - step)
            say(f"step {step}/{self.total}  loss {loss:.4f}  {left:.0f} s left")


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


def write_run(
    out: Path,
    model: nn.Module,
    *,
    config: Mapping[str, Any],
    columns: Iterable[str],
    curve: Iterable[Mapping[str, Any]],
    metrics: Mapping[str, Any],
) -> None:
    """model.safetensors, config.json, curve.csv, metrics.json, and last their SHA-256 sums.

    Args:
        out: directory of the run.
        model: trained.
        config: all that decided it, resolved.
        columns: of the curve.
        curve: rows.
        metrics: at the end; the number of parameters is added.
    """
    weights = {name: t.contiguous() for name, t in model.state_dict().items()}
    write_bytes(out / "model.safetensors", safetensors.torch.save(weights))
    write_json(out / "config.json", dict(config))
    write_rows(out / "curve.csv", columns, curve)
    parameters = sum(p.numel() for p in model.parameters())
    write_json(out / "metrics.json", {**metrics, "parameters": parameters})
    write_sums(out, ["model.safetensors", "config.json", "curve.csv", "metrics.json"])
