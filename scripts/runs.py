"""Rule runs: metrics and curves of all runs as tidy tables, and each arm's mean with interval."""

import json
from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp, CliPositionalArg

from normscope.errors import report
from normscope.io.csvfile import write_csv
from normscope.paper.words import run_key
from normscope.schema import Strict
from normscope.studies.main.tables import compare


class Flags(Strict):
    """Collect the losses of all runs."""

    metrics: CliPositionalArg[list[Path]] = Field(description="metrics.json of every run")
    baseline: str = Field(description="arm-placement that the others are compared with")
    level: float = Field(description="confidence level")
    out: Path = Field(description="directory for runs.csv, curves.csv, arms.csv")


def main() -> None:
    flags = CliApp.run(Flags)
    runs, curves = [], []
    for directory in (path.parent for path in flags.metrics):
        key = run_key(directory.name)
        runs.append(key | json.loads((directory / "metrics.json").read_text()))
        curves.append(pd.read_csv(directory / "curve.csv").assign(**key))
    table = pd.DataFrame(runs).astype(
        {"val_loss": float, "train_loss": float, "diverged_at": "Int64"}
    )
    curve = pd.concat(curves, ignore_index=True)
    keys = ["arm", "placement", "seed"]
    write_csv(flags.out / "runs.csv", table[keys + [c for c in table if c not in keys]])
    write_csv(flags.out / "curves.csv", curve[keys + [c for c in curve if c not in keys]])
    write_csv(flags.out / "arms.csv", compare(table, flags.baseline, flags.level))


if __name__ == "__main__":
    report(main)
