"""Tables of the kernel study: how many directions of a token each norm removes."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io.csvfile import write_csv
from normscope.schema import Strict
from normscope.studies.kernel.recipe import KernelTables
from normscope.studies.kernel.tables import ranks


class Flags(Strict):
    """Make the tables of the kernel study."""

    recipe: KernelTables
    out: Path = Field(description="directory for the tables")


def main() -> None:
    flags = parse(Flags)
    recipe = flags.recipe
    write_csv(flags.out / "ranks.csv", ranks(recipe.norms, recipe.widths, recipe.tokens))


if __name__ == "__main__":
    report(main)
