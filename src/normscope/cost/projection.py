"""What a configuration costs: measured where a job has a benchmark file, else projected.

A projection takes the seconds per unit of work of the measured job that is nearest in work, among
those of the same rule and kind: of this machine, and where it has none, of the reference. Work is
proportional to floating-point operations for trainings, and to models or blocks for what takes
them apart.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from normscope.config import Config
from normscope.cost.reference import Reference
from normscope.studies.study import Job


def jobs(config: Config) -> Iterator[Job]:
    """Those of all studies whose number or size depends on the configuration."""
    for study in config.studies.values():
        yield from study.jobs()


def once(rule: str, name: str = "") -> Job:
    """A job that no configuration sizes: tables, a figure, a page."""
    return Job(rule, name, "", 1.0)


def projected(job: Job, measured: Mapping[Job, float], start: float) -> float:
    """Seconds of a job, from jobs that were measured; NaN where none is of its rule.

    Args:
        job: of any size.
        measured: seconds by job.
        start: seconds of these that are not in proportion to work.
    """
    alike = [(j, s) for j, s in measured.items() if (j.rule, j.kind) == (job.rule, job.kind)]
    alike = alike or [(j, s) for j, s in measured.items() if j.rule == job.rule]
    if not alike:
        return math.nan
    distance = {j: abs(math.log(j.work / job.work)) for j, _ in alike}
    least = min(distance.values())
    nearest = [(s, job.work / j.work) for j, s in alike if distance[j] <= least + 1e-9]
    seconds = [min(start, s) + (s - min(start, s)) * larger for s, larger in nearest]
    return sum(seconds) / len(seconds)


def reference_seconds(job: Job, reference: Reference) -> float:
    """CPU seconds of a job on the reference's machine; of a rule that it does not know, a start."""
    seconds = projected(job, reference.seconds, reference.start_s)
    return reference.start_s if math.isnan(seconds) else seconds


@dataclass(frozen=True)
class Costs:
    """What is known of a machine's jobs.

    Args:
        reference: jobs of another machine.
        measured: CPU seconds by job, of this one.
        slowness: CPU seconds of this machine for one of the reference's.
    """

    reference: Reference
    measured: Mapping[Job, float]
    slowness: float

    def seconds(self, planned: Iterable[Job]) -> dict[Job, float]:
        """CPU seconds by job."""
        alike: dict[tuple[str, str, float], float] = {}  # projections, which are the same for many
        times = {}
        for job in planned:
            key = (job.rule, job.kind, job.work)
            if job not in self.measured and key not in alike:
                alike[key] = self._projected(job)
            times[job] = self.measured[job] if job in self.measured else alike[key]
        return times

    def _projected(self, job: Job) -> float:
        own = projected(job, self.measured, self.reference.start_s)
        if math.isnan(own):
            return self.slowness * reference_seconds(job, self.reference)
        return own


def cost_rows(planned: Iterable[Job], costs: Costs) -> list[dict[str, Any]]:
    """One row per rule: jobs, how many were measured, core-hours of these and of the others."""
    rows: dict[str, dict[str, Any]] = {}
    for job, seconds in costs.seconds(planned).items():
        empty = {"rule": job.rule, "jobs": 0, "measured jobs": 0, "measured": 0.0, "projected": 0.0}
        row = rows.setdefault(job.rule, empty)
        row["jobs"] += 1
        is_measured = job in costs.measured
        row["measured jobs"] += is_measured
        row["measured" if is_measured else "projected"] += seconds / 3600
    return list(rows.values())
