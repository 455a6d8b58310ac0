"""Train Transformers, a seed each, on a corpus. Started again, it continues."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset
from normscope.io.dataset import FILES
from normscope.train.files import write_models
from normscope.train.outputs import TrainingFlags, say
from normscope.train.problem import NextCharacter
from normscope.train.recipe import Stack
from normscope.train.runtime import start
from normscope.train.session import train
from normscope.train.stacking import in_step


class Flags(TrainingFlags):
    """Train the models of a cell, one a seed."""

    recipe: Stack
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")


def main() -> None:
    flags = parse(Flags)
    stack, data = flags.recipe, dataset.read(flags.data)
    runtime = start(stack.training.precision, flags.threads, stack.device)
    config = stack.model_dump() | {"vocab_size": data.vocab_size} | runtime.recorded
    tokens = stack.training.batch_size * stack.model.block_size
    train(
        flags,
        stack,
        NextCharacter(stack, data),
        runtime,
        in_step=in_step(len(stack.seeds), stack.device, tokens, stack.model.n_embd),
        script=Path(__file__),
        data=[flags.data / name for name in FILES],
        write=lambda learners: write_models(flags.out, learners, config),
    )
    say(f"outputs in {flags.out}")


if __name__ == "__main__":
    report(main)
