"""The CPU seconds of jobs, projected from measurements on a reference machine.

A projection scales the measured job of the same rule and kind whose work is nearest. Work is
proportional to floating-point operations for trainings, and to models or blocks for probes.
"""

import csv
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import Field

from normscope.config import Config
from normscope.io.yamlfile import read_yaml
from normscope.schema import NonNegativeFloat, PositiveFloat, Strict
from normscope.studies.folder import FOLDER
from normscope.studies.study import Job


class Reference(Strict):
    """Measured CPU seconds of jobs on one machine."""

    machine: str = Field(description="the chip, and how busy it was")
    start_s: NonNegativeFloat = Field(description="CPU seconds of the imports of a job")
    jobs: list[tuple[str, str, PositiveFloat, PositiveFloat]] = Field(
        description="rule, kind, work in the unit of the rule, CPU seconds including start-up"
    )

    def seconds(self, job: Job) -> float:
        """The projected CPU seconds of a job; unknown rules cost one interpreter start."""
        of_rule = [row for row in self.jobs if row[0] == job.rule]
        alike = [row for row in of_rule if row[1] == job.kind] or of_rule
        if not alike:
            return self.start_s
        *_, work, seconds = min(alike, key=lambda row: abs(math.log(row[2] / job.work)))
        start = min(self.start_s, seconds)
        return start + (seconds - start) * job.work / work


def read_reference(path: Path) -> Reference:
    """Read the measurements from a YAML file, and those of each study from its ``costs.yaml``.

    Raises:
        Explained: a file is not YAML.
        ValidationError: a key is missing, unknown or has a wrong value.
    """
    content = read_yaml(path)
    content["jobs"] += [
        (f"{file.parent.name}_{stage}", *row)
        for file in sorted(FOLDER.glob("*/costs.yaml"))
        for stage, *row in read_yaml(file)
    ]
    return Reference.model_validate(content)


def jobs(config: Config) -> Iterator[Job]:
    """The jobs of all studies and of the card whose number or size the configuration decides."""
    for part in filter(None, (*config.studies.values(), config.card)):
        yield from part.jobs()


def once(rule: str) -> Job:
    """A job whose size does not depend on the configuration: tables, a figure, a page."""
    return Job(rule, "", "", 1.0)


def critical_paths(config: Config, reference: Reference) -> dict[tuple[str, str], float]:
    """The CPU seconds from the start of a job until the tables that need it are made.

    Only trainings and probes, by rule and name: the longest chain of a training, a probing job that
    measures its models, and the tables of their study.
    """
    own = {(job.rule, job.name): reference.seconds(job) for job in jobs(config)}
    paths = {}
    for name, study in config.studies.items():
        tables = reference.seconds(once(f"{name}_tables"))
        after = dict.fromkeys(study.trainings(), tables)
        for probe in study.probes():
            job = (f"{name}_probe", probe)
            paths[job] = own[job] + tables
            for training in study.probed(probe):
                after[training] = max(after.get(training, tables), paths[job])
        for training in study.trainings():
            job = (f"{name}_train", training)
            paths[job] = own[job] + after[training]
    return paths


def benchmarked(folder: Path, planned: Iterable[Job]) -> dict[Job, float]:
    """The CPU seconds of the jobs of a run that left a benchmark file.

    Args:
        folder: with ``<rule>/<name>.tsv``, and ``<rule>.tsv`` of a job without a name.
        planned: the jobs.
    """
    times = {}
    for job in planned:
        try:
            name = f"{job.rule}/{job.name}" if job.name else job.rule
            with (folder / f"{name}.tsv").open() as file:
                times[job] = float(next(csv.DictReader(file, delimiter="\t"))["cpu_time"])
        except (StopIteration, KeyError, TypeError, ValueError, OSError):
            continue  # missing, or the job was killed
    return times


PRIOR_S = 20.0  # seconds of work at the expected pace, before any job has finished


def seconds_left(left: float, done: float, elapsed_s: float, cores: int) -> float:
    """The remaining time of a run: the remaining work over the cores, at the measured pace.

    Args:
        left, done: The projected CPU seconds of the remaining and of the finished jobs.
        elapsed_s: The time since the run started.
    """
    pace = (elapsed_s * cores + PRIOR_S) / (done + PRIOR_S)
    return left * pace / cores


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
