"""Rule metrics: metrics.json, and the tables of the plots, for DVC to show and compare."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field
from pydantic_settings import CliPositionalArg

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import seal, write_json, write_text
from normscope.io.tables import read_table
from normscope.pages.metrics import LEDGER, cells, curves, nested, shown
from normscope.pages.statements import by_statement
from normscope.schema import FLOATS, Strict
from normscope.studies.folder import declared_tables
from normscope.verdicts.verdict import read as read_verdicts


class Flags(Strict):
    """Write metrics.json and plots/."""

    studies: CliPositionalArg[list[str]] = Field(description="those of the paper")
    claims: Path = Field(description="the verdicts, claims.json")
    results: Path = Field(description="directory with one folder per study")
    out: Path = Field(description="directory of the files")


def write(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Write the table of a plot; the folder is sealed, because DVC reads every file in it."""
    table = pd.DataFrame(rows, columns=list(columns))
    write_text(path, table.to_csv(index=False, float_format=f"%{FLOATS}"))


def main() -> None:
    flags = parse(Flags)
    numbers: dict[str, Any] = {LEDGER: by_statement(read_verdicts(flags.claims))}
    plots = flags.out / "plots"
    declared = declared_tables(*flags.studies)
    for name, column in shown(declared).items():
        table = declared[column.study][column.table]
        path = flags.results / column.study / "tables" / f"{column.table}.csv"
        rows = read_table(path, table).to_dict("records")
        if column.metric.along:
            for cell, curve in curves(column, rows).items():
                columns = [column.metric.along, column.column.name]
                write(plots / name / f"{'-'.join(cell)}.csv", curve, columns)
        else:
            values = cells(column, rows)
            numbers[name] = nested(values)
            named = [{"cell": " ".join(cell), name: v} for cell, v in values.items()]
            write(plots / f"{name}.csv", named, ["cell", name])
    write_json(flags.out / "metrics.json", numbers)
    seal(plots, flags.out / "metrics.json")


if __name__ == "__main__":
    run_script(main)
