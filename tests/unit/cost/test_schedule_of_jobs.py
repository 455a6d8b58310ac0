"""How long jobs take on so many cores, and what is left of them: planted jobs, by hand."""

import pytest

from normscope.cost.schedule import PRIOR_S, Progress, Task, about, makespan


def needing(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


INDEPENDENT = {1: Task(3), 2: Task(2), 3: Task(2), 4: Task(1)}


@pytest.mark.parametrize(("cores", "seconds"), [(1, 8), (2, 4), (3, 3), (9, 3)])
def test_cores_share_independent_jobs(cores, seconds):
    assert makespan(INDEPENDENT, cores) == seconds  # on two: 3 and 1 beside 2 and 2


def test_a_job_waits_for_what_it_needs():
    tasks = {1: Task(2), 2: Task(3, needs=needing(1)), 3: Task(4)}
    assert makespan(tasks, 2) == 5
    assert makespan(tasks | {4: Task(1, needs=needing(2, 3))}, 2) == 6
    assert makespan({2: Task(3, needs=needing(1))}, 2) == 3  # what is not to run is there


def test_a_job_of_two_cores_takes_two():
    assert makespan({1: Task(3, cores=2), 2: Task(1), 3: Task(1)}, 2) == 4
    assert makespan({1: Task(3, cores=2), 2: Task(1), 3: Task(1)}, 4) == 3
    # beside the longest a short one runs, and the wide one after both
    assert makespan({1: Task(3), 2: Task(2, cores=2), 3: Task(1)}, 2) == 5
    assert makespan({1: Task(3, cores=8)}, 2) == 3  # it is scaled down


def test_what_runs_keeps_its_core():
    tasks = {1: Task(1), 2: Task(4), 3: Task(4)}
    assert makespan(tasks, 2) == 5  # 4 and 4, then 1
    assert makespan(tasks, 2, running={1, 2}) == 5
    assert makespan(tasks, 1, running={1}) == 9
    assert makespan({}, 2) == 0


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_is_left_follows_the_pace_of_what_is_done():
    clock = Clock()
    progress = Progress({1: Task(10), 2: Task(30, needs=needing(1))}, 1, clock)
    assert (progress.share, progress.seconds_left) == (0.0, 40.0)
    progress.start([1, 77])
    clock.now += 4
    assert progress.seconds_left == 36.0
    clock.now += 16
    progress.finish(1)
    # 20 s for 10, beside those that came as expected
    pace = (PRIOR_S + 20) / (PRIOR_S + 10)
    assert progress.share == 0.25
    assert progress.seconds_left == pytest.approx(30 * pace)
    progress.start([2])
    clock.now += 10
    assert progress.seconds_left == pytest.approx(30 * pace - 10)
    assert str(progress) == "[#####---------------]  25% of the work, about 30 seconds left"
    clock.now += 1000
    assert progress.seconds_left == 0
    progress.finish(2)
    assert progress.share == 1.0


def test_a_job_of_two_cores_is_twice_the_work():
    progress = Progress({1: Task(10, cores=2), 2: Task(20)}, 2, Clock())
    progress.start([1])
    progress.finish(1)
    assert progress.share == 0.5


def test_what_needs_a_failed_job_is_not_waited_for():
    tasks = {1: Task(10), 2: Task(30, needs=needing(1)), 3: Task(50, needs=needing(2)), 4: Task(5)}
    progress = Progress(tasks, 1, Clock())
    progress.start([1, 4])
    progress.fail(1)
    assert progress.seconds_left == 5
    progress.fail(1)
    progress.finish(1)  # another attempt
    progress.finish(4)
    assert (progress.share, progress.seconds_left) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "a few seconds"),
        (9.9, "a few seconds"),
        (42, "about 40 seconds"),
        (89, "about 90 seconds"),
        (100, "about 2 minutes"),
        (14 * 60 + 20, "about 14 minutes"),
        (99 * 60, "about 99 minutes"),
        (2.4 * 3600, "about 2 hours"),
        (71 * 3600, "about 71 hours"),
        (80 * 3600, "about 3 days"),
    ],
)
def test_a_time_has_one_or_two_digits(seconds, words):
    assert about(seconds) == words
