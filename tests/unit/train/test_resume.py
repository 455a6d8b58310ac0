"""The loop of every training: which steps are saved, where it continues, what it says."""

from pathlib import Path
from typing import Any

import pytest

from normscope.train.checkpoint import BrokenCheckpoint, Checkpoints
from normscope.train.resume import run_to_end


class Counter:
    """Adds its step to a total, to step 10 or to a total above a bound."""

    def __init__(self, bound: int = 1000) -> None:
        self.step = self.total = 0
        self.bound, self.over, self.restored_at = bound, False, None

    @property
    def done(self) -> bool:
        return self.step == 10 or self.over

    def state(self) -> dict[str, Any]:
        return {"total": self.total, "over": self.over}

    def restore(self, step: int, state: dict[str, Any]) -> None:
        self.step = self.restored_at = step
        self.total, self.over = state["total"], state["over"]

    def advance(self) -> float:
        if self.total + self.step + 1 > self.bound:
            self.over = True
            return float("inf")
        self.step += 1
        self.total += self.step
        return float(self.total)


class Saved(Checkpoints):
    """Notes which steps are saved."""

    def __init__(self, directory: Path, every: int) -> None:
        super().__init__(directory, "f", every)
        self.steps: list[int] = []

    def save(self, step: int, state: dict[str, Any]) -> None:
        self.steps.append(step)
        super().save(step, state)


def go(counter: Counter, checkpoints: Checkpoints) -> tuple[list[str], list[tuple[int, float]]]:
    said: list[str] = []
    seen: list[tuple[int, float]] = []
    run_to_end(counter, checkpoints, say=said.append, progress=lambda *args: seen.append(args))
    return said, seen


@pytest.mark.parametrize(
    ("every", "steps"), [(1, list(range(1, 11))), (4, [4, 8, 10]), (5, [5, 10]), (99, [10])]
)
def test_multiples_and_the_last_step_are_saved_once_each(tmp_path, every, steps):
    checkpoints = Saved(tmp_path, every)
    said, seen = go(Counter(), checkpoints)
    assert checkpoints.steps == steps
    assert said == []
    assert seen == [(n, n * (n + 1) / 2) for n in range(1, 11)]


@pytest.mark.parametrize("stop", range(1, 11))
def test_it_continues_at_the_newest_checkpoint(tmp_path, stop):
    def fail(step: int, _: float) -> None:
        if step == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_to_end(Counter(), Checkpoints(tmp_path, "f", 3), say=print, progress=fail)
    counter = Counter()
    said, seen = go(counter, Checkpoints(tmp_path, "f", 3))
    newest = (stop - 1) // 3 * 3
    assert counter.restored_at == (newest or None)
    assert said == ([f"continuing from step {newest}"] if newest else [])
    assert [step for step, _ in seen] == list(range(newest + 1, 11))
    assert counter.total == 55


def test_a_run_that_ends_early_is_saved_as_ended(tmp_path):
    counter = Counter(bound=20)
    _, seen = go(counter, Checkpoints(tmp_path, "f", 99))
    assert seen[-1] == (5, float("inf"))
    again = Counter(bound=20)
    said, seen = go(again, Checkpoints(tmp_path, "f", 99))
    assert (said, seen) == (["continuing from step 5"], [])
    assert (again.total, again.over) == (15, True)


def test_no_sound_checkpoint_is_an_error_and_nothing_is_trained(tmp_path):
    go(Counter(), Checkpoints(tmp_path, "f", 1))
    for path in Checkpoints(tmp_path, "f", 1).files():
        path.write_bytes(b"")
    counter = Counter()
    with pytest.raises(BrokenCheckpoint):
        go(counter, Checkpoints(tmp_path, "f", 1))
    assert counter.step == 0
