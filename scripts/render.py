"""Rule render: the summary as Markdown, HTML and PDF, and its tables and numbers for LaTeX."""

from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import read_json, read_svg, seal, write_bytes, write_text
from normscope.pages.frame import read
from normscope.pages.latex import latex_files
from normscope.pages.page import page
from normscope.pages.pandoc import github, pdf
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
    write_text(flags.out / "summary.md", github(text))
    write_text(flags.out / "summary.html", page(flags.templates, text, svgs, manifest))
    write_bytes(flags.out / "summary.pdf", pdf(text, flags.templates, svgs))
    for name, content in latex_files(frame, flags.templates).items():
        write_text(flags.out / name, content)
    seal(*(flags.out / name for name in FILES))


if __name__ == "__main__":
    run_script(main)
