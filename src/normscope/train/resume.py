"""The loop of every training: from the newest checkpoint to the end, saving on the way."""

from collections.abc import Callable
from typing import Any, Protocol

from normscope.train.checkpoint import Checkpoints


class Resumable(Protocol):
    """Something trained step by step, whose state decides all that follows."""

    step: int

    @property
    def done(self) -> bool: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, step: int, state: dict[str, Any]) -> None: ...

    def advance(self) -> float:
        """One step; returns its training loss."""
        ...


def run_to_end(
    trainer: Resumable,
    checkpoints: Checkpoints,
    *,
    say: Callable[[str], None],
    progress: Callable[[int, float], None],
) -> None:
    """Advance ``trainer`` until it is done, from the newest checkpoint if there is one.

    An interrupted and resumed run ends with the same bytes as an uninterrupted one. The last step
    is checkpointed too, so that a failure to write the outputs costs nothing.

    Args:
        trainer: at step 0.
        checkpoints: of this run, locked by the caller.
        say: takes a line for the log.
        progress: takes (step, training loss) after each step.

    Raises:
        BrokenCheckpoint, OSError: see ``Checkpoints``.
    """
    step, state, notes = checkpoints.load()
    for note in notes:
        say(note)
    if state:
        trainer.restore(step, state)
        say(f"continuing from step {step}")
    while not trainer.done:
        loss = trainer.advance()
        progress(trainer.step, loss)
        if trainer.done or trainer.step % checkpoints.every == 0:
            checkpoints.save(trainer.step, trainer.state())
