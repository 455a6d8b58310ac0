"""A training job: its stacks one after the other, its lock, checkpoints, log and timing."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from normscope.io import provenance
from normscope.train.checkpoint import Checkpoints, reserve
from normscope.train.outputs import Progress, TrainingFlags, check_store, log, write_timing
from normscope.train.problem import Problem
from normscope.train.recipe import Seeds
from normscope.train.runtime import Runtime
from normscope.train.trainer import Learner, Trainer


def train(
    flags: TrainingFlags,
    recipe: Seeds,
    problems: Sequence[tuple[Problem, list[int]]],
    runtime: Runtime,
    *,
    models_per_stack: int,
    code: Sequence[Path],
    data: Sequence[Path] = (),
    write: Callable[[list[Learner]], None],
) -> None:
    """Train the models of a job from the newest checkpoints to the end, and write them.

    Checkpoints are used only for the same seeds, recipe, runtime, code and data. The last ones are
    kept: if the outputs are lost before the workflow has stored them, they are written again
    without training. If a stack exceeds the device's memory, its halves are trained in turn.

    Args:
        recipe: everything that determines the weights, except code and data.
        problems: what the models learn, with the seeds that learn it.
        models_per_stack: how many models are trained together.
        code: files whose code determines the weights, together with all modules that they import.
        write: called with the trained models, in the order of the recipe's seeds.
    """
    began = time.monotonic()
    check_store(flags.store)
    log(runtime.description)
    digests = provenance.code_digest(provenance.closure(*code)), provenance.digest(data)
    shared = recipe.model_dump_json(exclude={"seeds"})
    conditions = " ".join([shared, str(runtime), torch.__version__, *digests])
    progress = Progress(sum(one.training.steps * len(seeds) for one, seeds in problems))
    learners: dict[int, Learner] = {}
    stacks = [
        (problem, seeds[i : i + models_per_stack])
        for problem, seeds in problems
        for i in range(0, len(seeds), models_per_stack)
    ]
    with reserve(flags.checkpoints):
        while stacks:
            problem, seeds = stacks.pop(0)
            folder = flags.checkpoints / f"{seeds[0]}x{len(seeds)}"
            checkpoints = Checkpoints(folder, f"{seeds} {conditions}", flags.checkpoint_every)
            try:
                learners |= _train_stack(problem, seeds, runtime, checkpoints, progress)
            except torch.OutOfMemoryError:
                if len(seeds) == 1:
                    raise
                stacks[:0] = [(problem, half) for half in _halves(seeds, runtime)]
        write([learners[seed] for seed in recipe.seeds])
    if flags.timing is not None:
        write_timing(flags.timing, time.monotonic() - began, progress.seconds)


def _halves(seeds: list[int], runtime: Runtime) -> list[list[int]]:
    """The halves of a stack that exceeds the device's memory."""
    n, half = len(seeds), len(seeds) // 2
    log(f"{n} models together exceed the memory of {runtime.device}: {half}, then {n - half}")
    return [seeds[:half], seeds[half:]]


def _train_stack(
    problem: Problem,
    seeds: Sequence[int],
    runtime: Runtime,
    checkpoints: Checkpoints,
    progress: Progress,
) -> dict[int, Learner]:
    """Train models together, and return them by seed.

    A resumed run ends with the same bytes as an uninterrupted one. The last step is checkpointed
    too, so that a failure to write the outputs costs nothing. The optimizer and the stacked
    gradients are freed on return, before the next stack is built.
    """
    trainer = Trainer(problem, seeds, runtime)
    step, state, notes = checkpoints.load()
    for note in notes:
        log(note)
    if state:
        trainer.restore(step, state)
        log(f"continuing from step {step}")
    while not trainer.is_done:
        loss = trainer.advance()
        progress.show(len(seeds), trainer.step, loss)
        if trainer.is_done or trainer.step % checkpoints.every == 0:
            checkpoints.save(trainer.step, trainer.state())
    trainer.write_back()
    for learner in trainer.learners:
        log(_outcome(learner))
    progress.finished += len(seeds) * problem.training.steps
    checkpoints.keep(1)
    return {learner.seed: learner for learner in trainer.learners}


def _outcome(learner: Learner) -> str:
    """How a training ended, for the log."""
    if learner.val_loss is None or learner.diverged_at is not None:
        at = f"diverged at step {learner.diverged_at}"
        return f"seed {learner.seed}: {at}: the loss is not finite or above the bound"
    return f"seed {learner.seed}: validation loss {learner.val_loss.mean:.4f}"
