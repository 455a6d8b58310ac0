"""Rule train: one model, from bins to weights, curve and metrics. Started again, it continues."""

import io
import math
import sys
import time
from pathlib import Path
from statistics import median

import pandas as pd
import safetensors.torch
import torch
from pydantic import Field
from pydantic_settings import CliApp
from tqdm import tqdm

from normscope import dataset, provenance
from normscope.checkpoint import Checkpoints
from normscope.errors import report
from normscope.files import write_bytes, write_json, write_text
from normscope.recipe import PositiveInt, Run
from normscope.runtime import Runtime, start
from normscope.training import Result, train

LOG_EVERY_S = 5.0


class Flags(Run):
    """Train one model."""

    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    out: Path = Field(description="directory for model, config, curve and metrics")
    checkpoints: Path = Field(description="directory for checkpoints, this run's alone")
    timing: Path | None = Field(default=None, description="TSV for the speed of this process")
    checkpoint_every: PositiveInt = Field(
        default=250, description="steps that a kill can cost at most"
    )
    threads: PositiveInt = Field(
        default=1, description="CPU threads; sums in another order differ in bits"
    )

    def run(self) -> Run:
        return Run(**{name: getattr(self, name) for name in Run.model_fields})


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


def say(line: str) -> None:
    tqdm.write(line, file=sys.stderr)


def write_outputs(out: Path, flags: Flags, runtime: Runtime, vocab_size: int, end: Result) -> None:
    """The four files of a run. metrics.json comes last: where it is, the others are whole."""
    weights = {name: t.contiguous() for name, t in end.model.state_dict().items()}
    write_bytes(out / "model.safetensors", safetensors.torch.save(weights))
    resolved = flags.run().model_dump() | {
        "vocab_size": vocab_size,
        "threads": runtime.threads,
        "matmul": runtime.matmul,
        "matmul_error": runtime.error,
        "torch": torch.__version__,
    }
    write_json(out / "config.json", resolved)
    table = io.StringIO()
    columns = ["step", "train_loss", "grad_norm", "learning_rate", "val_loss"]
    pd.DataFrame(end.curve, columns=columns).to_csv(table, index=False, lineterminator="\n")
    write_bytes(out / "curve.csv", table.getvalue().encode())
    metrics = {
        "val_loss": end.val_loss.mean if end.val_loss else None,
        "val_loss_window_sd": end.val_loss.window_sd if end.val_loss else None,
        "train_loss": end.curve[-1]["train_loss"] if end.curve else None,
        "diverged_at": end.diverged_at,
        "parameters": sum(p.numel() for p in end.model.parameters()),
    }
    write_json(out / "metrics.json", metrics)


def main() -> None:
    began = time.monotonic()
    flags = CliApp.run(Flags)
    run, data = flags.run(), dataset.read(flags.data)
    runtime = start(run.training.precision, flags.threads)
    say(
        f"{runtime.precision} products (float32 setting {runtime.matmul}) are off by "
        f"{runtime.error:.1e} against float64; {runtime.threads} thread(s)"
    )
    tokens = [flags.data / name for name in ("train.bin", "val.bin", "meta.pkl")]
    decides = [*provenance.closure(Path(__file__)), *tokens]
    fingerprint = (
        f"{run.model_dump_json()} {runtime} {torch.__version__} {provenance.digest(decides)}"
    )
    checkpoints = Checkpoints(flags.checkpoints, fingerprint, flags.checkpoint_every)
    with checkpoints.lock():
        progress = Progress(run.training.steps)
        result = train(run, data, runtime, checkpoints, say=say, progress=progress)
        write_outputs(flags.out, flags, runtime, data.vocab_size, result)
        checkpoints.clear()
    if flags.timing is not None:
        step_ms = 1e3 * median(progress.steps) if progress.steps else math.nan
        row = f"{time.monotonic() - began:.1f}\t{len(progress.steps)}\t{step_ms:.2f}"
        write_text(flags.timing, f"s\tsteps\tms_per_step\n{row}")
    progress.bar.close()
    loss = "none, it diverged" if result.val_loss is None else f"{result.val_loss.mean:.4f}"
    say(f"validation loss {loss}; outputs in {flags.out}")


if __name__ == "__main__":
    report(main)
