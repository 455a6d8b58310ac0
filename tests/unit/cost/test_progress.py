"""How much of a run is left: by hand, and against a schedule with the bound of its theory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normscope.cost.progress import PRIOR_S, Progress, Task, about


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def task(seconds: float, *needs: int, cores: int = 1) -> Task:
    return Task(seconds, cores, frozenset(needs))


@pytest.mark.parametrize(
    ("tasks", "cores", "seconds"),
    [
        ([], 2, 0),
        ([task(3), task(2), task(2), task(1)], 1, 8),
        ([task(3), task(2), task(2), task(1)], 2, 4),
        ([task(3), task(2), task(2), task(1)], 9, 3),
        ([task(2), task(3, 0), task(1)], 2, 5),  # a chain
        ([task(3, 77)], 2, 3),  # what it needs is there
        ([task(3, cores=2), task(1)], 2, 3.5),
        ([task(3, cores=8), task(1)], 2, 3.5),  # Snakemake gives it two
    ],
)
def test_what_is_left_is_the_work_over_the_cores_or_the_longest_chain(tasks, cores, seconds):
    assert Progress(dict(enumerate(tasks)), cores).seconds_left == seconds


@st.composite
def graphs(draw) -> list[Task]:
    """Each task needs some of those before it."""
    times = draw(st.lists(st.integers(1, 100), min_size=1, max_size=20))
    needs = [
        draw(st.sets(st.integers(0, n - 1), max_size=3)) if n else set() for n in range(len(times))
    ]
    return [task(s, *before) for s, before in zip(times, needs, strict=True)]


def scheduled(tasks: list[Task], cores: int) -> float:
    """When the last task ends if any task that is ready starts as soon as a core is free."""
    ends: dict[int, float] = {}
    now = 0.0
    while True:
        waiting = [n for n in range(len(tasks)) if n not in ends]
        ready = [n for n in waiting if all(ends.get(m, now + 1) <= now for m in tasks[n].needs)]
        free = cores - sum(end > now for end in ends.values())
        ends |= {n: now + tasks[n].seconds for n in ready[:free]}
        if len(ends) == len(tasks):
            return max(ends.values())
        now = min(end for end in ends.values() if end > now)


@given(graphs(), st.integers(1, 5))
def test_no_schedule_is_shorter_and_a_greedy_one_is_less_than_twice_as_long(tasks, cores):
    """Graham (1966): at most 2 - 1/cores times the larger of the two bounds."""
    left = Progress(dict(enumerate(tasks)), cores).seconds_left
    assert left - 1e-9 <= scheduled(tasks, cores) <= (2 - 1 / cores) * left + 1e-9


def test_what_is_left_follows_the_pace_of_the_finished_jobs():
    clock = Clock()
    progress = Progress({1: task(10), 2: task(30, 1)}, 1, clock)
    assert (progress.fraction, progress.seconds_left) == (0.0, 40.0)
    progress.start([1, 77])
    clock.now += 4
    assert progress.seconds_left == 36.0
    clock.now += 16
    progress.finish(1)
    pace = (PRIOR_S + 20) / (PRIOR_S + 10)  # it took 20 s instead of 10 s
    assert progress.fraction == 0.25
    assert progress.seconds_left == pytest.approx(30 * pace)
    progress.start([2])
    clock.now += 10
    assert progress.seconds_left == pytest.approx(30 * pace - 10)
    assert str(progress) == "[#####---------------]  25% of the work, about 30 seconds left"
    clock.now += 1000
    assert progress.seconds_left == 0
    progress.finish(2)
    assert progress.fraction == 1.0


def test_a_job_of_two_cores_is_twice_the_work():
    progress = Progress({1: task(10, cores=2), 2: task(20)}, 2, Clock())
    progress.start([1])
    progress.finish(1)
    assert progress.fraction == 0.5


def test_jobs_that_need_a_failed_job_are_not_waited_for():
    tasks = {1: task(10), 2: task(30, 1), 3: task(50, 2), 4: task(5)}
    progress = Progress(tasks, 1, Clock())
    progress.start([1, 4])
    progress.fail(1)
    assert progress.seconds_left == 5
    progress.fail(1)
    progress.finish(1)  # of another attempt
    progress.finish(4)
    assert (progress.fraction, progress.seconds_left) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (9.9, "a few seconds"),
        (42, "about 40 seconds"),
        (89, "about 90 seconds"),
        (100, "about 2 minutes"),
        (99 * 60, "about 99 minutes"),
        (2.4 * 3600, "about 2 hours"),
        (71 * 3600, "about 71 hours"),
        (80 * 3600, "about 3 days"),
    ],
)
def test_a_duration_has_one_or_two_digits(seconds, words):
    assert about(seconds) == words
