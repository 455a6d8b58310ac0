"""How long a run still takes, from the events that Snakemake logs."""

import logging
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean

from snakemake_interface_logger_plugins.common import LogEvent

LOGGER = logging.getLogger("snakemake.logging")
STEP = 0.05  # share of the work after which the remaining time is printed again
RESTORED_S = 1.0  # a shorter job only took its result from the store


class Countdown(logging.Handler):
    """Prints the remaining time at the pace of the finished jobs, from when ``prints`` is set.

    Each job is expected to need the time of the shortest job, and more in proportion to its
    floating-point operations: at the pace of its rule, or else of all trainings.

    Args:
        work: by rule, the floating-point operations of its jobs by their wildcard ``name``.
    """

    def __init__(self, work: Mapping[str, Mapping[str, float]]) -> None:
        super().__init__()
        self.work = work
        self.untrained = {rule: dict(of_rule) for rule, of_rule in work.items()}
        self.waiting = Counter[str]()  # jobs of each rule that have not finished
        self.running: dict[int, tuple[str, str, float]] = {}  # rule, name and start
        self.took = defaultdict[str, list[tuple[float, float]]](list)  # operations and seconds
        self.spent = 0.0  # seconds of all finished jobs
        self.began, self.next = 0.0, STEP / 2
        self.prints = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._note(getattr(record, "event", None), vars(record), record.created)
        except Exception:
            self.handleError(record)

    def _note(self, event: LogEvent | None, fields: Mapping, now: float) -> None:
        if event == LogEvent.RUN_INFO:
            self.waiting = Counter({k: n for k, n in fields["stats"].items() if k != "total"})
        elif event == LogEvent.JOB_INFO:
            self.began = self.began or now
            name = fields["wildcards"].get("name", "")
            self.running[fields["jobid"]] = (fields["rule_name"], name, now)
        elif event == LogEvent.JOB_ERROR:
            rule, *_ = self.running.pop(fields["jobid"], ("",))
            self.waiting[rule] -= 1
        elif event == LogEvent.JOB_FINISHED:
            rule, name, since = self.running.pop(fields["job_id"], ("", "", now))
            operations = self.untrained.get(rule, {}).pop(name, 1.0)
            self.waiting[rule] -= 1
            self.spent += now - since
            if now - since >= RESTORED_S:
                self.took[rule].append((operations, now - since))
        elif event == LogEvent.PROGRESS and self.prints and (estimate := self._left(now)):
            share, seconds = estimate
            if self.next <= share < 1:
                self.next = share + STEP
                print(f"{share:.0%} of the work, {about(seconds)} left", file=sys.stderr)

    def _left(self, now: float) -> tuple[float, float] | None:
        """The share of the work that is done, and the remaining seconds; None if not known."""
        trained = [job for rule in self.work for job in self.took[rule]]
        has_pace = trained or not any(self.waiting[rule] for rule in self.work)
        if not has_pace or not any(self.took.values()):
            return None
        start = min(seconds for jobs in self.took.values() for _, seconds in jobs)
        left = 0.0
        for rule, n in (+self.waiting).items():
            operations = mean(self.untrained.get(rule, {}).values() or [1.0])
            alike = self.took[rule] or (trained if rule in self.work else [])
            left += n * (start + operations * _pace(alike, start))
        running = sum(now - since for *_, since in self.running.values())
        done, left = self.spent + running, max(left - running, 0.0)
        return done / (done + left), left * (now - self.began) / done


def _pace(jobs: Sequence[tuple[float, float]], start: float) -> float:
    """Seconds per operation of finished jobs, without the time in which each of them starts."""
    return sum(s - start for _, s in jobs) / sum(n for n, _ in jobs) if jobs else 0.0


def about(seconds: float) -> str:
    """A rounded duration."""
    if seconds < 90:
        return f"about {math.ceil(seconds / 10) * 10} seconds"
    minutes = seconds / 60
    return f"about {minutes:.0f} minutes" if minutes < 100 else f"about {minutes / 60:.0f} hours"
