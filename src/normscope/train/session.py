"""The frame of every training script: its log, lock, checkpoints, progress and timing."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from normscope.io import provenance
from normscope.schema import Strict
from normscope.train.checkpoint import Checkpoints
from normscope.train.outputs import Progress, TrainingFlags, check_store, say, write_timing
from normscope.train.runtime import Runtime


@contextmanager
def session(
    flags: TrainingFlags,
    recipe: Strict,
    steps: int,
    runtime: Runtime,
    *,
    script: Path,
    data: Sequence[Path] = (),
) -> Iterator[tuple[Checkpoints, Progress]]:
    """Checkpoints, locked, and the progress of a training; its outputs are written inside.

    Checkpoints hold for this recipe, runtime, code and data alone. The last one is kept: outputs
    that are lost before the workflow has stored them are written again without training.

    Args:
        flags: of the script.
        recipe: all that decides the weights, beside code and data.
        steps: of the training.
        runtime: threads and precision.
        script: whose code decides, with all modules that it imports.
        data: files that are trained on.
    """
    began = time.monotonic()
    check_store(flags.store)
    say(runtime.described)
    code, tokens = provenance.code_digest(provenance.closure(script)), provenance.digest(data)
    fingerprint = f"{recipe.model_dump_json()} {runtime} {torch.__version__} {code} {tokens}"
    checkpoints = Checkpoints(flags.checkpoints, fingerprint, flags.checkpoint_every)
    with checkpoints.lock():
        progress = Progress(steps)
        yield checkpoints, progress
        checkpoints.keep(1)
    if flags.timing is not None:
        write_timing(flags.timing, time.monotonic() - began, progress.steps)
    progress.bar.close()
