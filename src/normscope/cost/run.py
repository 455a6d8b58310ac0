"""Where and when a run was made, and how long it took, which its results do not contain."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from normscope.config import Config
from normscope.cost.machine import chip
from normscope.cost.projection import benchmarked, jobs, once


def ran(config: Config, study: str, results: Path) -> dict[str, Any]:
    """Chip, date and core-hours of a study or of the card, on the machine that made them.

    Args:
        config: The configuration of the run.
        study: A study, or ``card``.
        results: The folder of the run.
    """
    planned = {job for job in jobs(config) if job.rule.startswith(f"{study}_")}
    planned.add(once(f"{study}_tables"))
    seconds = benchmarked(results / "benchmarks", planned)
    made = max(path.stat().st_mtime for path in (results / study / "tables").iterdir())
    return {
        "chip": chip(),
        "date": f"{datetime.fromtimestamp(made, UTC):%Y-%m-%d}",
        "core_hours": round(sum(seconds[job] for job in planned & seconds.keys()) / 3600, 4),
        "unmeasured_jobs": len(planned - seconds.keys()),
    }
