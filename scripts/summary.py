"""Rule summary: what a reader should know, in one page of Markdown."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import write_text
from normscope.paper.frame import read
from normscope.paper.markdown import summary
from normscope.paper.template import summary_text
from normscope.schema import Strict
from normscope.studies.folder import FOLDER


class Flags(Strict):
    """Write summary.md."""

    frame: Path = Field(description="all that is printed, frame.json")
    templates: Path = Field(description="directory of summary.md")
    out: Path


def main() -> None:
    flags = parse(Flags)
    frame = read(flags.frame)
    write_text(flags.out, summary(summary_text(flags.templates, FOLDER, frame), frame))


if __name__ == "__main__":
    run_script(main)
