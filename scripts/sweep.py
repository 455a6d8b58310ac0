"""Rule card_train: train a norm at several learning rates, and then more seeds at the best one."""

import time
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.studies.card.recipe import Sweep
from normscope.studies.card.sweep import sweep
from normscope.train.outputs import TrainingFlags, log, write_timing
from normscope.train.runtime import start


class Flags(TrainingFlags):
    """Train the models of a norm under a regime. Started again, it continues."""

    recipe: Sweep
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")


def main() -> None:
    began, flags = time.monotonic(), parse(Flags)
    runtime = start(flags.recipe.training.precision, flags.threads, flags.recipe.device)
    sweep(flags, flags.recipe, flags.data, runtime, [Path(__file__)])
    if flags.timing is not None:
        write_timing(flags.timing, time.monotonic() - began)
    log(f"outputs in {flags.out}")


if __name__ == "__main__":
    run_script(main)
