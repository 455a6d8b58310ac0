"""Rule page: the summary as one page of HTML that loads nothing."""

import json
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import write_text
from normscope.paper.frame import read
from normscope.paper.page import open_look, page
from normscope.paper.template import summary_text
from normscope.schema import Strict
from normscope.studies.folder import FOLDER


class Flags(Strict):
    """Write summary.html."""

    frame: Path = Field(description="all that is printed, frame.json")
    templates: Path = Field(description="directory of summary.md and the page's files")
    figures: Path = Field(description="directory of the figures, NAME.svg")
    manifest: Path = Field(description="where the results came from, manifest.json")
    out: Path


def main() -> None:
    flags = parse(Flags)
    frame = read(flags.frame)
    text = summary_text(flags.templates, FOLDER, frame)
    svgs = {path.stem: path.read_bytes() for path in flags.figures.glob("*.svg")}
    manifest = json.loads(flags.manifest.read_text())
    write_text(flags.out, page(open_look(flags.templates), text, frame, svgs, manifest))


if __name__ == "__main__":
    run_script(main)
