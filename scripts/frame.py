"""Rule frame: collect every word and number that the summary and the LaTeX files show."""

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.config import Studies
from normscope.errors import run_script
from normscope.io.files import read_json
from normscope.io.tables import Tables
from normscope.pages.evidence import read_evidence
from normscope.pages.figures import drawn, load
from normscope.pages.frame import Figure, collect
from normscope.pages.section import Section, declared_section
from normscope.schema import Strict
from normscope.studies.folder import FOLDER
from normscope.verdicts.verdict import read as read_verdicts


class Flags(Strict):
    """Collect what is printed."""

    config: Studies = Field(description="the configuration of all studies as JSON")
    claims: Path = Field(description="the verdicts, claims.json")
    traces: Path = Field(description="where every statement is tested and measured, traces.json")
    results: Path = Field(description="directory with one folder per study, and paper/figures")
    evidence: Path | None = Field(
        default=None, description="directory with the kept results of another run"
    )
    demonstration: bool = Field(
        default=False,
        description="whether the models are too small to test statements",
    )
    out: Path


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
    captions = flags.results / "paper" / "figures"
    entries = drawn(load(FOLDER, flags.config.studies), flags.config)
    verdicts = read_verdicts(flags.claims)
    figures = {
        name: Figure(entry.heading(verdicts.words), (captions / f"{name}.txt").read_text().strip())
        for name, entry in entries.items()
    }
    evidence = None
    if flags.evidence is not None:
        config = flags.config.model_dump_json(exclude=flags.config.titles)
        evidence = read_evidence(flags.evidence, json.loads(config))
    frame = collect(
        sections(flags.config, flags.results),
        verdicts,
        figures,
        traces=read_json(flags.traces),
        evidence=evidence,
        demonstration=flags.demonstration,
    )
    frame.write(flags.out)


if __name__ == "__main__":
    run_script(main)
