"""Train the models of one job of a study, one per seed. Started again, it continues."""

import sys
from pathlib import Path
from typing import Any

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.studies.stage import recipe_type, source, stage
from normscope.train.files import write_models
from normscope.train.outputs import TrainingFlags, log
from normscope.train.plan import next_character
from normscope.train.runtime import start
from normscope.train.session import train
from normscope.train.stacking import models_per_stack


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
    plan = prepare(flags.recipe, flags.data)
    n = len(flags.recipe.seeds)
    train(
        flags,
        flags.recipe,
        plan.problem,
        runtime,
        models_per_stack=models_per_stack(n, flags.recipe.device, plan.tokens, plan.width)
        if plan.stacks
        else 1,
        code=[Path(__file__), source(prepare)],
        data=plan.data,
        write=lambda learners: write_models(
            flags.out, learners, plan.config | runtime.recorded, moments=plan.keeps_moments
        ),
    )
    log(f"outputs in {flags.out}")


if __name__ == "__main__":
    run_script(main)
