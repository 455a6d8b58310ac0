"""Train one model of the decisive test. Started again, it continues."""

from pathlib import Path

from normscope.command import parse
from normscope.errors import report
from normscope.studies.recall.recipe import RecallRun
from normscope.studies.recall.trainer import RecallTrainer
from normscope.train.outputs import TrainingFlags, say, write_run
from normscope.train.resume import run_to_end
from normscope.train.runtime import start
from normscope.train.session import session


class Flags(TrainingFlags):
    """Train one model of the decisive test."""

    recipe: RecallRun


def main() -> None:
    flags = parse(Flags)
    run, runtime = flags.recipe, start("fp32", flags.threads)
    trainer = RecallTrainer(run)
    framed = session(flags, run, run.task.steps, runtime, script=Path(__file__))
    with framed as (checkpoints, progress):
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
    if trainer.diverged_at is not None:
        say(f"diverged at step {trainer.diverged_at}: the loss is not finite or above the bound")
    say(f"outputs in {flags.out}")


if __name__ == "__main__":
    report(main)
