"""Rule render: the summary as Markdown, HTML and PDF, and its tables and numbers for LaTeX."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import read_json, read_svg, seal, write_bytes, write_text
from normscope.pages import latex, typeset
from normscope.pages.frame import read
from normscope.pages.markdown import summary
from normscope.pages.page import page
from normscope.pages.template import summary_text
from normscope.schema import Strict
from normscope.studies.folder import FOLDER

FILES = (
    *("summary.md", "summary.html", "summary.pdf"),
    *("numbers.tex", "claims.tex", "example.tex", "tables"),
)


class Flags(Strict):
    """Write summary.md, .html and .pdf, numbers.tex, claims.tex, example.tex and tables/."""

    frame: Path = Field(description="all that is printed, frame.json")
    manifest: Path = Field(description="where the results came from, manifest.json")
    templates: Path = Field(description="directory of the templates, workflow/report")
    figures: Path = Field(description="directory of the figures, NAME.svg")
    out: Path = Field(description="directory of the files")


def main() -> None:
    flags = parse(Flags)
    frame = read(flags.frame)
    text = summary_text(flags.templates, FOLDER, frame)
    svgs = {path.stem: read_svg(path) for path in flags.figures.glob("*.svg")}
    manifest = read_json(flags.manifest)
    html = page(flags.templates, text, frame, svgs, manifest)
    layout = (flags.templates / "summary.typ").read_text()
    write_text(flags.out / "summary.md", summary(text, frame))
    write_text(flags.out / "summary.html", html)
    write_bytes(flags.out / "summary.pdf", typeset.pdf(layout, text, frame, svgs))
    for name, content in latex.files(frame, flags.templates / "latex").items():
        write_text(flags.out / name, content)
    seal(*(flags.out / name for name in FILES))


if __name__ == "__main__":
    run_script(main)
