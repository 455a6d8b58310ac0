"""Train models of the decisive test, a seed each. Started again, it continues."""

from pathlib import Path

from normscope.command import parse
from normscope.errors import report
from normscope.studies.recall.problem import Asked
from normscope.studies.recall.recipe import RecallStack
from normscope.train.files import write_models
from normscope.train.outputs import TrainingFlags, say
from normscope.train.runtime import start
from normscope.train.session import train
from normscope.train.stacking import in_step


class Flags(TrainingFlags):
    """Train the models of a cell, one a seed."""

    recipe: RecallStack


def main() -> None:
    flags = parse(Flags)
    stack, task = flags.recipe, flags.recipe.task
    runtime = start("fp32", flags.threads, stack.device)
    config = stack.model_dump() | runtime.recorded
    train(
        flags,
        stack,
        Asked(stack),
        runtime,
        in_step=in_step(len(stack.seeds), stack.device, task.batch_size, task.n_embd),
        script=Path(__file__),
        write=lambda learners: write_models(flags.out, learners, config, moments=True),
    )
    say(f"outputs in {flags.out}")


if __name__ == "__main__":
    report(main)
