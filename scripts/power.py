"""Rule power: seeds that would decide each open statement, and what they cost on this machine."""

import json
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.config import Config
from normscope.cost.benchmarks import measured
from normscope.cost.machine import probe
from normscope.cost.power import power_table
from normscope.cost.projection import Costs
from normscope.cost.reference import read_reference
from normscope.errors import report
from normscope.ledger.entry import load
from normscope.paper.markdown import pipe_table
from normscope.paper.table import Column, count, number, short, tabulate, text
from normscope.schema import Strict


class Flags(Strict):
    """Print what would decide the open statements."""

    config: str = Field(description="the validated configuration as JSON")
    claims: Path = Field(description="the statements, data/claims.yaml")
    ledger: Path = Field(description="their verdicts, claims.json")
    reference: Path = Field(description="what jobs cost on another machine")
    manifest: Path = Field(description="of the run that the benchmark files are of")
    benchmarks: Path = Field(description="directory of benchmark files")


def main() -> None:
    flags = parse(Flags)
    config = Config.model_validate_json(flags.config)
    reference = read_reference(flags.reference)
    known = measured(flags.benchmarks, flags.manifest, config)
    costs = Costs(reference, known, probe().round_s / reference.round_s)
    contrasts = {
        key: entry.contrast.table.partition(".")[0]
        for key, entry in load(flags.claims).claims.items()
        if entry.contrast is not None
    }
    table = power_table(json.loads(flags.ledger.read_text()), contrasts, config, costs)
    columns = [
        Column("statement", text("statement")),
        *(Column(name, number(name, 3)) for name in ("effect", "spread")),
        Column("n", count("n")),
        Column("seeds for 90% power", short("needed")),
        Column("core-minutes here", number("minutes", 1)),
        Column("why it is open", text("why")),
    ]
    print(pipe_table(tabulate("Power", table, columns)))


if __name__ == "__main__":
    report(main)
