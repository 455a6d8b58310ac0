"""Rule render: the summary as Markdown, HTML and PDF, and its tables and numbers for LaTeX."""

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.config import Studies
from normscope.errors import run_script
from normscope.io.files import read_json, read_svg, seal, write_bytes, write_text
from normscope.io.tables import Tables
from normscope.pages.figures import load, select_figures
from normscope.pages.frame import Figure, collect
from normscope.pages.latex import latex_files
from normscope.pages.page import page
from normscope.pages.pandoc import github, pdf
from normscope.pages.section import Section, declared_section
from normscope.pages.template import summary_text
from normscope.schema import Strict
from normscope.studies.main.pages import scale
from normscope.studies.stage import FOLDER
from normscope.studies.statements import sources
from normscope.verdicts.findings import load as load_findings
from normscope.verdicts.verdict import read as read_verdicts

FILES = "frame.json numbers.tex claims.tex example.tex tables".split()
FILES += [f"summary.{kind}" for kind in ("md", "html", "pdf")]


class Flags(Strict):
    """Write summary.md, .html and .pdf, numbers.tex, claims.tex, example.tex and tables/."""

    config: Studies = Field(description="the configuration of all studies as JSON")
    claims: Path = Field(description="the verdicts, claims.json")
    findings: Path = Field(description="the questions and their answers, findings.yaml")
    manifest: Path = Field(description="where the results came from, manifest.json")
    templates: Path = Field(description="directory of the templates, workflow/report")
    results: Path = Field(description="directory with one folder per study, and paper/figures")
    evidence: Path | None = Field(default=None, description="the kept verdicts of another run")
    demonstration: bool = Field(default=False, description="whether its models test nothing")
    out: Path = Field(description="directory of the files")


def sections(config: Studies, results: Path) -> dict[str, Section]:
    """The section of each study that has one, in the order of the paper."""
    by_study = {}
    for study, part in config.studies.items():
        tables = Tables(results / study / "tables", part.TABLES)
        pages = f"normscope.studies.{study}.pages"
        if find_spec(pages):
            by_study[study] = import_module(pages).section(part, tables, config.settings)
        elif (FOLDER / study / "section.md").is_file():
            by_study[study] = declared_section(part.TABLES, tables)
    return by_study


def main() -> None:
    flags = parse(Flags)
    drawings = flags.results / "paper" / "figures"
    entries = select_figures(load(FOLDER, flags.config.studies), flags.config)
    captions = {name: (drawings / f"{name}.txt").read_text().strip() for name in entries}
    verdicts = read_verdicts(flags.claims)
    frame = collect(
        sections(flags.config, flags.results),
        verdicts,
        {
            name: Figure(entry.heading(verdicts.words), captions[name])
            for name, entry in entries.items()
        },
        findings=load_findings(flags.findings, verdicts.statements),
        scale=scale(flags.config.main),
        traces=sources(verdicts.entries, flags.config.studies),
        evidence=read_verdicts(flags.evidence) if flags.evidence else None,
        demonstration=flags.demonstration,
    )
    write_text(flags.out / "frame.json", json.dumps(vars(frame), default=vars, allow_nan=False))
    text = summary_text(flags.templates, FOLDER, frame)
    svgs = {name: read_svg(drawings / f"{name}.svg") for name in entries}
    write_text(flags.out / "summary.md", github(text))
    html = page(flags.templates, text, svgs, read_json(flags.manifest))
    write_text(flags.out / "summary.html", html)
    write_bytes(flags.out / "summary.pdf", pdf(text, flags.templates, svgs))
    for name, content in latex_files(frame, flags.templates).items():
        write_text(flags.out / name, content)
    seal(*(flags.out / name for name in FILES))


if __name__ == "__main__":
    run_script(main)
