"""Rule recall: one model of the decisive test. Started again, it continues."""

import time
from pathlib import Path

import torch
from pydantic_settings import CliApp

from normscope import provenance
from normscope.checkpoint import Checkpoints
from normscope.errors import report
from normscope.outputs import Progress, TrainingFlags, say, write_run
from normscope.recall.recipe import RecallRun
from normscope.recall.training import RecallTrainer
from normscope.resume import run_to_end
from normscope.runtime import start


class Flags(TrainingFlags, RecallRun):
    """Train one model of the decisive test."""

    def run(self) -> RecallRun:
        return RecallRun(**{name: getattr(self, name) for name in RecallRun.model_fields})


def main() -> None:
    began = time.monotonic()
    flags = CliApp.run(Flags)
    run, runtime = flags.run(), start("fp32", flags.threads)
    say(runtime.described)
    decides = provenance.digest(provenance.closure(Path(__file__)))
    fingerprint = f"{run.model_dump_json()} {runtime} {torch.__version__} {decides}"
    checkpoints = Checkpoints(flags.checkpoints, fingerprint, flags.checkpoint_every)
    with checkpoints.lock():
        trainer, progress = RecallTrainer(run), Progress(run.task.steps)
        run_to_end(trainer, checkpoints, say=say, progress=progress)
        config = run.model_dump() | runtime.recorded
        metrics = {"diverged_at": trainer.diverged_at}
        write_run(
            flags.out,
            trainer.model,
            config=config,
            columns=("step", "train_loss"),
            curve=trainer.curve,
            metrics=metrics,
        )
        checkpoints.clear()
    if flags.timing is not None:
        progress.write_timing(flags.timing, time.monotonic() - began)
    progress.bar.close()
    if trainer.diverged_at is not None:
        say(f"diverged at step {trainer.diverged_at}: the loss is not finite or above the bound")
    say(f"outputs in {flags.out}")


if __name__ == "__main__":
    report(main)
