"""Rule cost: core-hours of a configuration, from the benchmark files that are there."""

import pandas as pd

from normscope.command import parse
from normscope.cost.flags import CostFlags
from normscope.cost.projection import cost_rows, jobs, once
from normscope.errors import report
from normscope.paper.markdown import pipe_table
from normscope.paper.table import Column, count, number, tabulate, text


class Flags(CostFlags):
    """Print core-hours by rule."""


def main() -> None:
    flags = parse(Flags)
    config, costs = flags.priced()
    table = pd.DataFrame(cost_rows(jobs(config), costs))
    sized = set(table["rule"])
    others = {rule for rule, *_ in costs.reference.jobs} - sized - {"figures"}
    sums = pd.DataFrame(cost_rows(map(once, others), costs)).drop(columns="rule").sum()
    table = pd.concat([table, sums.to_frame("one job each").T.reset_index(names="rule")])
    sums = table.drop(columns="rule").sum()
    table = pd.concat([table, sums.to_frame("total").T.reset_index(names="rule")])
    columns = [Column("rule", text("rule"))]
    columns += [Column(name, count(name)) for name in ("jobs", "measured jobs")]
    columns += [Column(name, number(name, 2)) for name in ("measured", "projected")]
    print("Core-hours, one core's time:\n")
    print(pipe_table(tabulate("Core-hours", table, columns)))
    if sized - {job.rule for job in costs.measured}:
        print(
            f"\nProjected without a benchmark file of its rule: from {costs.reference.machine}; "
            f"this machine takes {costs.slowness:.1f} times as long for the probe."
        )


if __name__ == "__main__":
    report(main)
