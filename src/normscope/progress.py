"""What a run prints: its plan, the remaining time by the events of Snakemake, and its results."""

import logging
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from jinja2 import Environment, StrictUndefined
from snakemake_interface_logger_plugins.common import LogEvent

LOGGER = logging.getLogger("snakemake.logging")
STEP = 0.05  # share of the work after which the remaining time is printed again
RESTORED_S = 1.0  # a shorter job only took its result from the store
# of a recent core: seconds of a job without its training, and operations per second
START_S, PACE = 2.5, 3e10


class Countdown(logging.Handler):
    """Prints the remaining time at the pace of the finished jobs, from when ``prints`` is set.

    A job counts as ``START_S`` and its floating-point operations at ``PACE``, which ``work`` has by
    rule and wildcard ``name``; how long the finished ones took shows how fast this machine is.
    """

    def __init__(self, work: Mapping[str, Mapping[str, float]]) -> None:
        super().__init__()
        self.untrained = {rule: dict(of_rule) for rule, of_rule in work.items()}
        self.planned, self.waiting = Counter[str](), Counter[str]()  # jobs of each rule
        self.running: dict[int, tuple[str, str, float]] = {}  # rule, name and start
        self.began = self.done = 0.0  # done: the time of finished jobs on a usual core
        self.next = STEP / 2
        self.prints = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._note(getattr(record, "event", None), vars(record), record.created)
        except Exception:
            self.handleError(record)

    def _note(self, event: LogEvent | None, fields: Mapping, now: float) -> None:
        if event == LogEvent.RUN_INFO:
            self.waiting = Counter({k: n for k, n in fields["stats"].items() if k != "total"})
            self.planned = self.waiting.copy()
        elif event == LogEvent.JOB_INFO:
            self.began = self.began or now
            name = fields["wildcards"].get("name", "")
            self.running[fields["jobid"]] = (fields["rule_name"], name, now)
        elif event == LogEvent.JOB_ERROR:
            rule, *_ = self.running.pop(fields["jobid"], ("",))
            self.waiting[rule] -= 1
        elif event == LogEvent.JOB_FINISHED:
            rule, name, since = self.running.pop(fields["job_id"], ("", "", now))
            operations = self.untrained.get(rule, {}).pop(name, 0.0)
            self.waiting[rule] -= 1
            if now - since >= RESTORED_S:
                self.done += START_S + operations / PACE
        elif event == LogEvent.PROGRESS and self.prints and self.done:
            left = self.seconds(self.waiting)
            share = self.done / (self.done + left)
            if self.next <= share < 1:
                self.next = share + STEP
                remaining = about(left * (now - self.began) / self.done)
                print(f"{share:.0%} of the work, {remaining} left", file=sys.stderr)

    def seconds(self, jobs: Counter[str]) -> float:
        """The time of jobs, by their number for each rule, on a usual core."""
        sizes = {
            rule: mean(of_rule.values()) for rule, of_rule in self.untrained.items() if of_rule
        }
        operations = sum(jobs[rule] * size for rule, size in sizes.items())
        return jobs.total() * START_S + operations / PACE

    def plan(self, norms: Sequence[str], cores: int) -> str:
        """What a run will do, in a line; its time on some cores, unless these are 0."""
        named = ([name for name in norms if ", " not in name] or norms)[:4]
        others, n = len(norms) - len(named), self.planned.total()
        names = ", ".join(named) + f" and {others} more" * (others > 0)
        time = about(self.seconds(self.planned) / (cores or 1))
        return f"Trains {names}: {n} jobs" + f", {time} on {cores} core(s)" * (cores > 0)


def ending(template: Path, words: Mapping[str, Any]) -> str:
    """The lines that a run ends with: a template of Jinja2, filled with what the run found."""
    templates = Environment(undefined=StrictUndefined, trim_blocks=True)  # noqa: S701 - for a terminal
    return templates.from_string(template.read_text()).render(words)


def about(seconds: float) -> str:
    """A rounded duration."""
    if seconds < 90:
        return f"about {math.ceil(seconds / 10) * 10} seconds"
    minutes = seconds / 60
    return f"about {minutes:.0f} minutes" if minutes < 100 else f"about {minutes / 60:.0f} hours"
