"""What a configuration costs: measured where a job has a benchmark file, else projected.

A projection takes the seconds per unit of work of the measured job that is nearest in work, among
those of the same rule and kind. Work is proportional to floating-point operations for trainings,
and to models or blocks for what takes them apart.
"""

import math
from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from normscope.config import Config
from normscope.studies.study import Job


def jobs(config: Config) -> Iterator[Job]:
    """Those of all studies whose number or size depends on the configuration."""
    for study in config.studies.values():
        yield from study.jobs()


def projected(job: Job, measured: Iterable[tuple[Job, float]]) -> float:
    """Seconds of a job, from jobs that were measured; NaN where none is of its rule and kind."""
    alike = [(j, s) for j, s in measured if (j.rule, j.kind) == (job.rule, job.kind)]
    alike = alike or [(j, s) for j, s in measured if j.rule == job.rule]
    if not alike:
        return math.nan
    distance = {j: abs(math.log(j.work / job.work)) for j, _ in alike}
    least = min(distance.values())
    rates = [s / j.work for j, s in alike if distance[j] <= least + 1e-9]
    return job.work * sum(rates) / len(rates)


def cost_table(
    planned: Iterable[Job], reference: Iterable[Job], seconds: Mapping[tuple[str, str], float]
) -> pd.DataFrame:
    """A row per rule: jobs, how many of them are measured, core-hours of these and of the rest.

    Args:
        planned: jobs of the configuration.
        reference: jobs of the configuration that the benchmark files are of. One that is asked for
            too, of the same kind and work, is measured.
        seconds: one core's, of jobs of ``reference`` by rule and name.
    """
    known = {j: seconds[j.rule, j.name] for j in reference if (j.rule, j.name) in seconds}
    measured = list(known.items())
    rows: dict[str, dict] = {}
    for job in planned:
        empty = {"rule": job.rule, "jobs": 0, "measured jobs": 0, "measured": 0.0, "projected": 0.0}
        row = rows.setdefault(job.rule, empty)
        row["jobs"] += 1
        if job in known:
            row["measured jobs"] += 1
            row["measured"] += known[job] / 3600
        else:
            row["projected"] += projected(job, measured) / 3600
    return pd.DataFrame(list(rows.values()))
