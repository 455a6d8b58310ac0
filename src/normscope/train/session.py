"""What every training script does: its log, lock, checkpoints and timing."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from normscope.io import provenance
from normscope.train.checkpoint import Checkpoints, locked
from normscope.train.outputs import Progress, TrainingFlags, check_store, say, write_timing
from normscope.train.problem import Problem
from normscope.train.recipe import Seeds
from normscope.train.resume import run_to_end
from normscope.train.runtime import Runtime
from normscope.train.trainer import Learner, Trainer


def train(
    flags: TrainingFlags,
    recipe: Seeds,
    problem: Problem,
    runtime: Runtime,
    *,
    in_step: int,
    code: Sequence[Path],
    data: Sequence[Path] = (),
    write: Callable[[list[Learner]], None],
) -> None:
    """Train the models of a job from the newest checkpoints to the end, and write them.

    Checkpoints hold for these seeds, recipe, runtime, code and data alone. The last ones are kept:
    outputs that are lost before the workflow has stored them are written again without training.
    Where the device's memory cannot hold a stack, its halves are trained one after the other.

    Args:
        flags: of the script.
        recipe: all that decides the weights, beside code and data.
        problem: what the models learn.
        runtime: device, threads and precision.
        in_step: how many models are trained at once.
        code: files whose code decides, with all modules that they import.
        data: files that are trained on.
        write: takes the trained models, in the order of the recipe's seeds.
    """
    began = time.monotonic()
    check_store(flags.store)
    say(runtime.described)
    statements = provenance.code_digest(provenance.closure(*code))
    tokens = provenance.digest(data)
    alike = recipe.model_dump_json(exclude={"seeds"})
    decides = f"{alike} {runtime} {torch.__version__} {statements} {tokens}"
    progress = Progress(problem.training.steps * len(recipe.seeds))
    learners: dict[int, Learner] = {}
    waiting = [recipe.seeds[i : i + in_step] for i in range(0, len(recipe.seeds), in_step)]
    with locked(flags.checkpoints):
        while waiting:
            seeds = waiting.pop(0)
            folder = flags.checkpoints / f"{seeds[0]}x{len(seeds)}"
            checkpoints = Checkpoints(folder, f"{seeds} {decides}", flags.checkpoint_every)
            try:
                trained = _trained(problem, seeds, runtime, checkpoints, progress)
            except torch.OutOfMemoryError:
                n, half = len(seeds), len(seeds) // 2
                if not half:
                    raise
                parts = f"{half}, then {n - half}"
                say(f"{n} models at once exceed the memory of {runtime.device}: {parts}")
                waiting[:0] = [seeds[:half], seeds[half:]]
                continue
            for learner in trained:
                say(_told(learner))
                learners[learner.seed] = learner
            progress.before += len(seeds) * problem.training.steps
            checkpoints.keep(1)
        write([learners[seed] for seed in recipe.seeds])
    if flags.timing is not None:
        write_timing(flags.timing, time.monotonic() - began, progress.steps)
    progress.bar.close()


def _trained(
    problem: Problem,
    seeds: Sequence[int],
    runtime: Runtime,
    checkpoints: Checkpoints,
    progress: Progress,
) -> list[Learner]:
    """Models in step; all that is theirs but the models is freed before the next are built."""
    trainer = Trainer(problem, seeds, runtime)
    run_to_end(trainer, checkpoints, say=say, progress=progress.of(len(seeds)))
    trainer.hand_over()
    return trainer.learners


def _told(learner: Learner) -> str:
    """How a training ended, for the log."""
    if learner.val_loss is None or learner.diverged_at is not None:
        at = f"diverged at step {learner.diverged_at}"
        return f"seed {learner.seed}: {at}: the loss is not finite or above the bound"
    return f"seed {learner.seed}: validation loss {learner.val_loss.mean:.4f}"
