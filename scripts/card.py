"""Rule card_page: the card of a norm as Markdown, HTML and PDF, and as JSON for programs."""

import platform
from importlib.metadata import version
from pathlib import Path

import torch
from pydantic import Field

from normscope.command import parse
from normscope.errors import run_script
from normscope.io.files import read_json, read_svg, seal, write_bytes, write_json, write_text
from normscope.io.tables import Tables, read_table
from normscope.schema import Strict
from normscope.studies.card import pages, sheet
from normscope.studies.card.grid import Card
from normscope.studies.card.lines import Cards
from normscope.studies.card.tables import SPEED

PACKAGES = ("numpy", "pandas", "scipy", "snakemake", "torch")


class Flags(Strict):
    """Write card.md, .html, .pdf and .json."""

    config: Card
    norm: str = Field(description="the arm whose card it is")
    tables: Path = Field(description="directory of the card's tables")
    speed: Path = Field(description="the table of costs, speed.csv")
    level: float = Field(description="confidence level of the intervals")
    ledger: Path | None = Field(default=None, description="the project's claims.json")
    figure: Path = Field(description="path of the figure without suffix, with .svg and .txt")
    dataset: Path = Field(description="meta.json of the text")
    templates: Path = Field(description="directory of the page's templates, workflow/report")
    out: Path = Field(description="directory of the files")


def main() -> None:
    flags = parse(Flags)
    tables, speed = Tables(flags.tables, Card.TABLES), read_table(flags.speed, SPEED)
    ledger = read_json(flags.ledger) if flags.ledger else None
    cards = Cards(flags.config, tables, speed, pages.asked(ledger), flags.level)
    svg, caption = (flags.figure.with_suffix(suffix) for suffix in (".svg", ".txt"))
    drawing = sheet.Drawing(read_svg(svg), caption.read_text().strip())
    machine = {
        "device": f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
    }
    origin = sheet.origin(flags.config, read_json(flags.dataset), machine)
    card = sheet.sheet(cards, flags.norm, drawing, flags.templates)
    write_text(flags.out / "card.md", card.markdown())
    write_text(flags.out / "card.html", card.html(origin))
    write_bytes(flags.out / "card.pdf", card.pdf())
    write_json(flags.out / "card.json", pages.records(cards, flags.norm) | {"origin": origin})
    seal(*(flags.out / f"card.{end}" for end in ("md", "html", "pdf", "json")))


if __name__ == "__main__":
    run_script(main)
