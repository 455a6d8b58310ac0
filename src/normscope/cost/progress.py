"""The remaining time of a run: the remaining work over the cores, at the pace so far."""

import time
from collections.abc import Callable, Iterable, Mapping

PRIOR_S = 20.0  # seconds of jobs that took as long as expected, before any job has finished
BAR = 20


class RemainingTime:
    """Estimates the remaining time of a run, as its jobs start and end.

    Unknown job numbers are ignored.

    Args:
        work: expected core-seconds of each job, by Snakemake's number for it.
        cores: of the run.
        clock: seconds, from any origin.
    """

    def __init__(
        self, work: Mapping[int, float], cores: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.left = dict(work)
        self.total = sum(self.left.values())
        self.cores = cores
        self.clock = clock
        self.started: dict[int, float] = {}
        self.expected_s = self.taken_s = PRIOR_S

    def start(self, numbers: Iterable[int]) -> None:
        """Note that these jobs start now."""
        self.started |= {n: self.clock() for n in numbers if n in self.left}

    def finish(self, number: int) -> None:
        """Note that a job has finished, and adapt the pace."""
        if number in self.started:
            self.expected_s += self.left.pop(number)
            self.taken_s += self.clock() - self.started.pop(number)

    @property
    def fraction(self) -> float:
        """The finished share of the expected work, 0 to 1."""
        return 1 - sum(self.left.values()) / self.total if self.total else 1.0

    @property
    def seconds(self) -> float:
        """The expected remaining seconds."""
        pace, now = self.taken_s / self.expected_s, self.clock()
        left = (
            max(0.0, work * pace - (now - self.started.get(n, now)))
            for n, work in self.left.items()
        )
        return sum(left) / self.cores

    def __str__(self) -> str:
        fraction = self.fraction
        bar = "#" * int(BAR * fraction)
        return f"[{bar:-<{BAR}}] {fraction:4.0%} of the work, {about(self.seconds)} left"


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
