"""Rule page: the summary as one page of HTML that loads nothing."""

import json
from pathlib import Path

from pydantic import Field
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_text
from normscope.paper.frame import read
from normscope.paper.page import Look, page
from normscope.schema import Strict


class Flags(Strict):
    """Write summary.html."""

    frame: Path = Field(description="all that is printed, frame.json")
    template: Path = Field(description="of the summary, in Markdown")
    page: Path = Field(description="the page around it, in Jinja2")
    style: Path = Field(description="CSS")
    script: Path = Field(description="JavaScript")
    figures: Path = Field(description="directory of the figures, NAME.svg")
    manifest: Path = Field(description="where the results came from, manifest.json")
    out: Path


def main() -> None:
    flags = CliApp.run(Flags)
    frame = read(flags.frame)
    svgs = {path.stem: path.read_bytes() for path in flags.figures.glob("*.svg")}
    manifest = json.loads(flags.manifest.read_text())
    look = Look(flags.page.read_text(), flags.style.read_text(), flags.script.read_text())
    write_text(flags.out, page(flags.template.read_text(), frame, svgs, manifest, look))


if __name__ == "__main__":
    report(main)
