"""Train a norm under a regime: pilot models at every learning rate, then seeds at the best one."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from normscope.io.files import write_sums, write_text
from normscope.schema import rate_name
from normscope.studies.card.recipe import FILES, PILOT, Sweep
from normscope.studies.pilot import least
from normscope.train.files import write_models
from normscope.train.outputs import TrainingFlags, log
from normscope.train.plan import next_character
from normscope.train.recipe import Stack
from normscope.train.runtime import Runtime
from normscope.train.session import train
from normscope.train.stacking import models_per_stack
from normscope.train.trainer import Learner


def sweep(
    flags: TrainingFlags, recipe: Sweep, data: Path, runtime: Runtime, code: Sequence[Path]
) -> None:
    """Train the models of a job and write them: ``FILES``, and last their SHA-256 sums.

    pilot.csv has the columns learning_rate, seed and val_loss, which is empty where a model
    diverged. The best rate is the one with the lowest mean loss. Interrupted, a sweep continues
    with the model that it was training.

    Args:
        flags: Of the script.
        recipe: What is trained.
        data: Directory of the corpus.
        runtime: Device, threads and precision.
        code: Files whose code determines the weights.
    """
    lines, losses = ["learning_rate,seed,val_loss"], {}
    for rate in recipe.learning_rates:
        pilots = _trained(flags, recipe.at(rate, recipe.pilot_seeds), data, runtime, code)[0]
        losses[rate] = fmean(math.inf if loss is None else loss for loss in map(_loss, pilots))
        lines += [f"{rate_name(rate)},{one.seed},{_text(_loss(one))}" for one in pilots]
    best = least(losses)
    log(f"learning rate {best:g} is the best of {', '.join(f'{rate:g}' for rate in losses)}")
    learners, config = _trained(flags, recipe.at(best, recipe.seeds), data, runtime, code)
    write_models(flags.out, learners, config)
    write_text(flags.out / PILOT, "\n".join(lines))
    write_sums(flags.out, FILES)


def _trained(
    flags: TrainingFlags, stack: Stack, data: Path, runtime: Runtime, code: Sequence[Path]
) -> tuple[list[Learner], dict[str, Any]]:
    """The trained models, with checkpoints of their own, and what config.json records of them."""
    plan, learners = next_character(stack, data), []
    n, name = len(stack.seeds), f"{rate_name(stack.training.learning_rate)}-{stack.seeds[0]}"
    train(
        flags.model_copy(update={"checkpoints": flags.checkpoints / name, "timing": None}),
        stack,
        plan.problem,
        runtime,
        models_per_stack=models_per_stack(n, stack.device, plan.tokens, plan.width)
        if plan.stacks
        else 1,
        code=code,
        data=plan.data,
        write=learners.extend,
    )
    return learners, dict(plan.config) | runtime.recorded


def _loss(learner: Learner) -> float | None:
    """The validation loss of a trained model; None if it diverged."""
    loss = learner.val_loss if learner.diverged_at is None else None
    return loss.mean if loss else None


def _text(loss: float | None) -> str:
    return "" if loss is None else repr(loss)
