"""Rule typeset: the summary in print."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io.files import write_bytes
from normscope.paper.frame import read
from normscope.paper.markdown import summary
from normscope.paper.typeset import pdf
from normscope.schema import Strict


class Flags(Strict):
    """Write summary.pdf."""

    frame: Path = Field(description="all that is printed, frame.json")
    template: Path = Field(description="the summary's words in Markdown")
    layout: Path = Field(description="its look in Typst")
    figures: Path = Field(description="directory of the figures as SVG")
    out: Path


def main() -> None:
    flags = CliApp.run(Flags)
    frame = read(flags.frame)
    figures = {
        f"figures/{name}.svg": (flags.figures / f"{name}.svg").read_bytes()
        for name in frame.captions
    }
    words = summary(flags.template.read_text(), frame)
    write_bytes(flags.out, pdf(flags.layout.read_text(), words, figures))


if __name__ == "__main__":
    report(main)
