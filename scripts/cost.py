"""Rule cost: the core-hours of a configuration."""

from pathlib import Path

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.config import Config
from normscope.cost.benchmarks import measured
from normscope.cost.machine import probe
from normscope.cost.projection import Costs, cost_rows, jobs, once
from normscope.cost.reference import read_reference
from normscope.errors import report
from normscope.formats import decimals
from normscope.paper.markdown import pipe_table
from normscope.paper.table import count, number, tabulate, text
from normscope.schema import Strict


class Flags(Strict):
    """Print core-hours by rule."""

    config: str = Field(description="the validated configuration as JSON")
    reference: Path = Field(description="what jobs cost on another machine")
    manifest: Path = Field(description="of the run that wrote the benchmark files")
    benchmarks: Path = Field(description="directory of benchmark files")


def main() -> None:
    flags = parse(Flags)
    config = Config.model_validate_json(flags.config)
    reference = read_reference(flags.reference)
    known = measured(flags.benchmarks, flags.manifest, config)
    costs = Costs(reference, known, probe().round_s / reference.round_s)
    table = pd.DataFrame(cost_rows(jobs(config), costs))
    sized = set(table["rule"])
    others = {rule for rule, *_ in reference.jobs} - sized - {"figures"}
    sums = pd.DataFrame(cost_rows(map(once, others), costs)).drop(columns="rule").sum()
    table = pd.concat([table, sums.to_frame("one job each").T.reset_index(names="rule")])
    sums = table.drop(columns="rule").sum()
    table = pd.concat([table, sums.to_frame("total").T.reset_index(names="rule")])
    columns = [
        text("rule"),
        *map(count, ("jobs", "measured jobs")),
        *(number(name, name, decimals(2)) for name in ("measured", "projected")),
    ]
    print("Core-hours, one core's time:\n")
    print(pipe_table(tabulate("Core-hours", table, columns)))
    if sized - {job.rule for job in known}:
        print(
            f"\nRules without a benchmark file are projected from {reference.machine}; "
            f"this machine takes {costs.slowness:.1f} times as long for the probe."
        )


if __name__ == "__main__":
    report(main)
