"""What jobs took on this machine, from the benchmark files that they left."""

import csv
import json
from pathlib import Path

from normscope.config import Config
from normscope.cost.projection import jobs, once
from normscope.studies.study import Job


def _seconds(path: Path) -> float | None:
    """CPU seconds of a file's job; None where it was cut short."""
    try:
        with path.open() as file:
            row = next(csv.DictReader(file, delimiter="\t"))
        return float(row["cpu_time"])
    except (StopIteration, KeyError, TypeError, ValueError, OSError):
        return None


def _ran(manifest: Path, config: Config) -> list[Job]:
    """The jobs of the run that a manifest is of; none where it is another version's."""
    try:
        ran = json.loads(manifest.read_text())["config"]
        return list(jobs(Config.model_validate({**ran, "dataset": config.dataset})))
    except (OSError, KeyError, TypeError, ValueError):
        return []


def measured(folder: Path, manifest: Path, config: Config) -> dict[Job, float]:
    """CPU seconds by job, of the benchmark files in a folder.

    A file does not say which configuration its job was of; the manifest does, of the last run that
    was complete. What is newer is of another run, and left out, but for jobs that no configuration
    sizes.

    Args:
        folder: of the benchmark files, ``<rule>/<name>.tsv`` and ``<rule>.tsv``.
        manifest: of the paper.
        config: gives the dataset, which a manifest leaves out.
    """
    files = {once(path.stem): path for path in folder.glob("*.tsv")}
    files |= {once("figures", path.stem): path for path in folder.glob("figures/*.tsv")}
    for job in _ran(manifest, config):
        path = folder / job.rule / f"{job.name}.tsv"
        if path.is_file() and path.stat().st_mtime <= manifest.stat().st_mtime:
            files[job] = path
    times = {job: _seconds(path) for job, path in files.items()}
    return {job: seconds for job, seconds in times.items() if seconds}
