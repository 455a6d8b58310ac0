"""Rule cost: core-hours of a configuration, from the benchmark files that are there."""

import csv
import json
from pathlib import Path

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.config import Config
from normscope.cost import cost_table, jobs
from normscope.errors import Explained, report
from normscope.paper.markdown import pipe_table
from normscope.paper.table import Column, count, number, tabulate, text
from normscope.schema import Strict


class Flags(Strict):
    """Print core-hours by rule."""

    config: str = Field(description="the validated configuration as JSON")
    manifest: Path = Field(description="of the run that the benchmark files are of")
    benchmarks: Path = Field(description="directory of benchmark files")


def seconds(benchmarks: Path) -> dict[tuple[str, str], float]:
    """CPU seconds by rule and name of every benchmark file of a job that has a name."""
    times = {}
    for path in sorted(benchmarks.glob("*/*.tsv")):
        row = next(csv.DictReader(path.open(), delimiter="\t"))
        times[path.parent.name, path.stem] = float(row.get("cpu_time") or row["s"])
    return times


def rest(benchmarks: Path) -> tuple[int, float]:
    """How many rules have one job each, and their CPU seconds."""
    rows = [next(csv.DictReader(p.open(), delimiter="\t")) for p in benchmarks.glob("*.tsv")]
    return len(rows), sum(float(row["cpu_time"]) for row in rows)


def main() -> None:
    flags = parse(Flags)
    known = seconds(flags.benchmarks)
    if not any(rule.endswith("_train") for rule, _ in known):
        raise Explained(
            f"{flags.benchmarks} has no timing of a training: remove a trained model from store/ "
            "and results/, or run in a fresh clone: snakemake --cores 4 models"
        )
    if not flags.manifest.is_file():
        raise Explained(f"{flags.manifest} is missing: run snakemake --cores 4 first, to measure")
    config = Config.model_validate_json(flags.config)
    ran = json.loads(flags.manifest.read_text())["config"]
    reference = Config.model_validate({**ran, "dataset": config.dataset})
    table = cost_table(jobs(config), jobs(reference), known)
    n, once = rest(flags.benchmarks)
    others = {"rule": "one job each", "jobs": n, "measured jobs": n, "measured": once / 3600}
    table = pd.concat([table, pd.DataFrame([others | {"projected": 0.0}])], ignore_index=True)
    total = pd.DataFrame([{"rule": "total", **table.drop(columns="rule").sum().to_dict()}])
    table = pd.concat([table, total], ignore_index=True)
    columns = [Column("rule", text("rule"))]
    columns += [Column(name, count(name)) for name in ("jobs", "measured jobs")]
    columns += [Column(name, number(name, 2)) for name in ("measured", "projected")]
    print("Core-hours, one core's time:\n")
    print(pipe_table(tabulate("Core-hours", table, columns)))


if __name__ == "__main__":
    report(main)
