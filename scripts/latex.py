"""Rule latex: booktabs tables, every number as a macro, the ledger, and a paper that shows them."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import write_text
from normscope.paper.frame import read
from normscope.paper.latex import files
from normscope.schema import Strict


class Flags(Strict):
    """Write numbers.tex, claims.tex, example.tex and tables/<study>/*.tex."""

    frame: Path = Field(description="all that is printed, frame.json")
    templates: Path = Field(description="directory of example.tex and table.tex")
    out: Path = Field(description="directory of the files")


def main() -> None:
    flags = parse(Flags)
    for name, text in files(read(flags.frame), flags.templates).items():
        write_text(flags.out / name, text)


if __name__ == "__main__":
    run_script(main)
