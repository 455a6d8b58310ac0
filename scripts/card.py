"""Rule card_page: the card of a norm as HTML, and where its results come from as JSON."""

import platform
from importlib.metadata import version
from pathlib import Path

import torch
from pydantic import Field

from normscope.command import parse
from normscope.custom_arms import CustomArms
from normscope.errors import run_script
from normscope.io.files import read_json, seal, write_json, write_text
from normscope.io.tables import Tables, read_table
from normscope.nn.arms import ARMS, LABELS
from normscope.pages.drawing import Look
from normscope.schema import Strict
from normscope.studies.card import pages
from normscope.studies.card.grid import Card
from normscope.studies.card.tables import SPEED

PACKAGES = ("numpy", "pandas", "scipy", "snakemake", "torch")


class Flags(Strict):
    """Write card.html and card.json."""

    arms: CustomArms = Field(default={}, description="arms with code of their own, JSON")
    config: Card
    norm: str = Field(description="the arm whose card it is")
    tables: Path = Field(description="directory of the card's tables")
    speed: Path = Field(description="the table of costs, speed.csv")
    look: Look
    dataset: Path = Field(description="meta.json of the text")
    templates: Path = Field(description="directory of the page's templates, workflow/report")
    out: Path = Field(description="directory of the files")


def main() -> None:
    flags = parse(Flags)
    tables, speed = Tables(flags.tables, Card.TABLES), read_table(flags.speed, SPEED)
    cards = pages.Cards(flags.config, tables, speed, flags.look)
    machine = {
        "device": f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
    }
    origin = pages.origin(flags.config, read_json(flags.dataset), machine)
    answer = {
        "norm": flags.norm,
        "label": LABELS[flags.norm],
        "source": ARMS[flags.norm].source,
        "budget": flags.config.budget,
        "answer": pages.headline(cards, flags.norm),
        "origin": origin,
    }
    write_text(flags.out / "card.html", pages.html(cards, flags.norm, flags.templates, origin))
    write_json(flags.out / "card.json", answer)
    seal(*(flags.out / f"card.{end}" for end in ("html", "json")))


if __name__ == "__main__":
    run_script(main)
