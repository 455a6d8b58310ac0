"""Rule metrics: metrics.json, and the tables of the plots, for DVC to show and compare."""

from pathlib import Path
from typing import Any

from pydantic import Field
from pydantic_settings import CliPositionalArg

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import seal, write_json, write_text
from normscope.io.tables import read_table
from normscope.pages.metrics import LEDGER, plot, shown_columns, tree_of
from normscope.pages.statements import by_statement
from normscope.schema import FLOATS, Strict
from normscope.studies.stage import declared_tables
from normscope.verdicts.verdict import read as read_verdicts


class Flags(Strict):
    """Write metrics.json and plots/."""

    studies: CliPositionalArg[list[str]] = Field(description="those of the paper")
    claims: Path = Field(description="the verdicts, claims.json")
    results: Path = Field(description="directory with one folder per study")
    out: Path = Field(description="directory of the files")


def main() -> None:
    flags = parse(Flags)
    numbers: dict[str, Any] = {LEDGER: by_statement(read_verdicts(flags.claims))}
    plots = flags.out / "plots"
    declared = declared_tables(*flags.studies)
    for name, column in shown_columns(declared).items():
        path = flags.results / column.study / "tables" / f"{column.table}.csv"
        table = plot(column, read_table(path, declared[column.study][column.table]))
        # the folder is sealed, because DVC reads every file in it
        write_text(plots / f"{name}.csv", table.to_csv(index=False, float_format=f"%{FLOATS}"))
        if not column.metric.along:
            numbers[name] = tree_of(table)
    write_json(flags.out / "metrics.json", numbers)
    seal(plots, flags.out / "metrics.json")


if __name__ == "__main__":
    run_script(main)
