"""Rule power: seeds that would decide each open statement, and what they cost on this machine."""

import json
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.cost.flags import CostFlags
from normscope.cost.power import power_table
from normscope.errors import report
from normscope.ledger.entry import load
from normscope.paper.markdown import pipe_table
from normscope.paper.table import Column, count, number, short, tabulate, text


class Flags(CostFlags):
    """Print what would decide the open statements."""

    claims: Path = Field(description="the statements, data/claims.yaml")
    ledger: Path = Field(description="their verdicts, claims.json")


def main() -> None:
    flags = parse(Flags)
    config, costs = flags.priced()
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
