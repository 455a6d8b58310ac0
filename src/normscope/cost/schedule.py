"""When jobs that need each other are done on so many cores, and how much of it is left."""

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

PRIOR_S = 20.0  # seconds of jobs that came as expected, before any job has finished
BAR = 20


@dataclass(frozen=True)
class Task:
    """A job to schedule.

    Args:
        seconds: from its start to its end.
        cores: that it keeps busy.
        needs: numbers of the tasks that must be done before it; one that is not known is done.
    """

    seconds: float
    cores: int = 1
    needs: frozenset[int] = frozenset()


def makespan(tasks: Mapping[int, Task], cores: int, running: Collection[int] = ()) -> float:
    """Seconds until all tasks are done: a list schedule, of those that are ready the longest first.

    Args:
        tasks: by number.
        cores: a task that wants more has these.
        running: numbers of the tasks that have their cores already.
    """
    waits = {n: len(task.needs & tasks.keys()) for n, task in tasks.items()}
    next_to = defaultdict(list)
    for n, task in tasks.items():
        for need in task.needs:
            next_to[need].append(n)
    ready = [(n not in running, -task.seconds, n) for n, task in tasks.items() if not waits[n]]
    heapq.heapify(ready)
    busy: list[tuple[float, int]] = []
    now, free = 0.0, cores
    while ready or busy:
        too_wide = []
        while ready and free:
            entry = heapq.heappop(ready)
            task = tasks[entry[-1]]
            if min(task.cores, cores) > free:
                too_wide.append(entry)
                continue
            free -= min(task.cores, cores)
            heapq.heappush(busy, (now + task.seconds, entry[-1]))
        for entry in too_wide:
            heapq.heappush(ready, entry)
        now, n = heapq.heappop(busy)
        free += min(tasks[n].cores, cores)
        for user in next_to[n]:
            waits[user] -= 1
            if not waits[user]:
                heapq.heappush(ready, (True, -tasks[user].seconds, user))
    return now


class Progress:
    """How far a run is, as its jobs start and end.

    Args:
        tasks: by number.
        cores: that it has.
        clock: seconds, from any start.
    """

    def __init__(
        self, tasks: Mapping[int, Task], cores: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.left = dict(tasks)
        self.cores = cores
        self.clock = clock
        self.began: dict[int, float] = {}
        self.done_s = 0.0  # expected, of one core
        self.expected_s = self.taken_s = PRIOR_S

    def start(self, numbers: Iterable[int]) -> None:
        """These tasks run now; numbers that are not known are passed over, here and below."""
        self.began |= {n: self.clock() for n in numbers if n in self.left}

    def finish(self, number: int) -> None:
        """A task is done."""
        if number not in self.began:
            return
        task = self.left.pop(number)
        self.done_s += task.seconds * task.cores
        self.expected_s += task.seconds
        self.taken_s += self.clock() - self.began.pop(number)

    def fail(self, number: int) -> None:
        """A task failed: what needs it is not made either."""
        self.began.pop(number, None)
        if self.left.pop(number, None) is not None:
            for user in [n for n, task in self.left.items() if number in task.needs]:
                self.fail(user)

    @property
    def share(self) -> float:
        """Of the expected seconds those of the tasks that are done, 0 to 1."""
        left_s = sum(task.seconds * task.cores for task in self.left.values())
        return self.done_s / (self.done_s + left_s) if left_s else 1.0

    @property
    def seconds_left(self) -> float:
        """Until all is done, at the pace of the tasks that are done."""
        pace, now = self.taken_s / self.expected_s, self.clock()
        left = {}
        for n, task in self.left.items():
            elapsed = now - self.began.get(n, now)
            left[n] = replace(task, seconds=max(0.0, task.seconds * pace - elapsed))
        return makespan(left, self.cores, self.began)

    def __str__(self) -> str:
        share = self.share
        bar = "#" * int(BAR * share)
        return f"[{bar:-<{BAR}}] {share:4.0%} of the work, {about(self.seconds_left)} left"


def about(seconds: float) -> str:
    """Seconds in words, in a unit that leaves one or two digits."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 90:
        return f"about {round(seconds, -1):.0f} seconds"
    for unit, size, limit in (("minutes", 60, 100), ("hours", 3600, 72)):
        if seconds < limit * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {seconds / 86400:.0f} days"
