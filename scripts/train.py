"""Train the models of one job of a study, one per seed. Started again, it continues."""

import sys
from pathlib import Path
from typing import Any

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.studies.stage import recipe_type, source, stage
from normscope.train.job import Job
from normscope.train.outputs import TrainingFlags, log
from normscope.train.plan import next_character
from normscope.train.runtime import start


class Flags(TrainingFlags):
    """Train the models of a cell, one per seed: ``train.py STUDY --recipe JSON ...``."""

    recipe: Any
    data: Path | None = Field(
        default=None, description="directory with train.bin, val.bin, meta.pkl"
    )


def main() -> None:
    prepare = stage("train", next_character)
    flags = parse(Flags, sys.argv[2:], recipe=recipe_type(prepare))
    runtime = start(flags.recipe.training.precision, flags.threads, flags.recipe.device)
    code = [Path(__file__), source(prepare)]
    Job(flags, flags.data, runtime, prepare, code).run(flags.recipe)
    log(f"outputs in {flags.out}")


if __name__ == "__main__":
    run_script(main)
