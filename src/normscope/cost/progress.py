"""How much of a run is left: the remaining work over the cores, at the pace of the run so far."""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple

PRIOR_S = 20.0  # seconds of jobs that took as long as expected, before any job has finished
BAR = 20


class Task(NamedTuple):
    """A job that is to run.

    Args:
        seconds: expected, from its start to its end.
        cores: that it keeps busy.
        needs: numbers of the tasks that must be done before it.
    """

    seconds: float
    cores: int = 1
    needs: frozenset[int] = frozenset()


class Progress:
    """How far a run is, as its jobs start and end. Unknown numbers are ignored.

    Args:
        tasks: by number.
        cores: of the run.
        clock: seconds, from any origin.
    """

    def __init__(
        self, tasks: Mapping[int, Task], cores: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.left = dict(tasks)
        self.cores = cores
        self.clock = clock
        self.started: dict[int, float] = {}
        self.done_s = 0.0  # expected, of one core
        self.expected_s = self.taken_s = PRIOR_S

    def start(self, numbers: Iterable[int]) -> None:
        """These tasks run from now on."""
        self.started |= {n: self.clock() for n in numbers if n in self.left}

    def finish(self, number: int) -> None:
        """A task is done."""
        if number in self.started:
            task = self.left.pop(number)
            self.done_s += task.seconds * task.cores
            self.expected_s += task.seconds
            self.taken_s += self.clock() - self.started.pop(number)

    def fail(self, number: int) -> None:
        """A task failed, so that the tasks that need it never run."""
        self.started.pop(number, None)
        if self.left.pop(number, None) is not None:
            for user in [n for n, task in self.left.items() if number in task.needs]:
                self.fail(user)

    @property
    def fraction(self) -> float:
        """Of the expected work the part that is done, 0 to 1."""
        left_s = sum(task.seconds * task.cores for task in self.left.values())
        return self.done_s / (self.done_s + left_s) if left_s else 1.0

    @property
    def seconds_left(self) -> float:
        """The remaining work over the cores, and at least the longest chain of remaining tasks."""
        pace, now = self.taken_s / self.expected_s, self.clock()
        seconds = {
            n: max(0.0, task.seconds * pace - (now - self.started.get(n, now)))
            for n, task in self.left.items()
        }

        @cache
        def end(number: int) -> float:  # with a core for every task
            needs = self.left[number].needs & seconds.keys()
            return seconds[number] + max(map(end, needs), default=0.0)

        work = sum(s * min(self.left[n].cores, self.cores) for n, s in seconds.items())
        return max(work / self.cores, *map(end, seconds), 0.0)

    def __str__(self) -> str:
        fraction = self.fraction
        bar = "#" * int(BAR * fraction)
        return f"[{bar:-<{BAR}}] {fraction:4.0%} of the work, {about(self.seconds_left)} left"


def about(seconds: float) -> str:
    """A rounded duration, in a unit that leaves one or two digits."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 90:
        return f"about {round(seconds, -1):.0f} seconds"
    for unit, size, limit in (("minutes", 60, 100), ("hours", 3600, 72)):
        if seconds < limit * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {seconds / 86400:.0f} days"
