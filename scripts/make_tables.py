"""Make the tables of a study from the files of its jobs."""

import sys
from pathlib import Path
from typing import Any

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.tables import as_declared, write_tables
from normscope.studies.stage import TableInputs, recipe_type, stage, tables_of


class Flags(TableInputs):
    """Make the tables of a study: ``make_tables.py STUDY --recipe JSON ...``."""

    recipe: Any
    out: Path = Field(description="directory for the tables")


def main() -> None:
    tabulate = stage("tabulate")
    flags = parse(Flags, sys.argv[2:], recipe=recipe_type(tabulate))
    tables = tabulate(flags.recipe, flags)
    write_tables(flags.out, as_declared(tables, tables_of(tabulate)))


if __name__ == "__main__":
    run_script(main)
