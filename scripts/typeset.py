"""Rule typeset: the summary in print."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import write_bytes
from normscope.paper.frame import read
from normscope.paper.template import summary_text
from normscope.paper.typeset import pdf
from normscope.schema import Strict
from normscope.studies.folder import FOLDER


class Flags(Strict):
    """Write summary.pdf."""

    frame: Path = Field(description="all that is printed, frame.json")
    templates: Path = Field(description="directory of summary.md and summary.typ")
    figures: Path = Field(description="directory of the figures, NAME.svg")
    out: Path


def main() -> None:
    flags = parse(Flags)
    frame = read(flags.frame)
    layout = (flags.templates / "summary.typ").read_text()
    svgs = {path.stem: path.read_bytes() for path in flags.figures.glob("*.svg")}
    write_bytes(flags.out, pdf(layout, summary_text(flags.templates, FOLDER, frame), frame, svgs))


if __name__ == "__main__":
    run_script(main)
