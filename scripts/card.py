"""Rule card_page: the cards of norms as HTML, and where their results come from as JSON."""

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from pydantic import Field

from normscope.command import parse
from normscope.custom_arms import CustomArms
from normscope.errors import run_script
from normscope.io.files import read_json, seal, write_json, write_text
from normscope.io.tables import Tables, read_table
from normscope.io.texts import DATASET, text_folder
from normscope.nn.arms import ARMS
from normscope.pages.drawing import Look
from normscope.schema import Strict
from normscope.studies.card import pages
from normscope.studies.card.grid import Card
from normscope.studies.card.tables import SPEED

PACKAGES = ("numpy", "pandas", "scipy", "snakemake", "torch")
NOTE = (
    "card.json has these values and the settings of all trainings. Times differ from run to run; "
    "everything else is the same for the same inputs."
)


class Flags(Strict):
    """Write NORM/card.html and NORM/card.json for every norm."""

    arms: CustomArms = Field(default={}, description="arms with code of their own, JSON")
    config: Card
    look: Look
    dataset: Path = Field(description="meta.json of the default text")
    templates: Path = Field(description="directory of the page's templates, workflow/report")
    out: Path = Field(description="directory of the cards, with tables/ and speed/")


def main() -> None:
    flags = parse(Flags)
    trainings: dict[str, Any] = {
        name: sweep.model_dump(mode="json") for name, sweep in flags.config.trainings().items()
    }
    origin = {
        "note": NOTE,
        "config_sha256": hashlib.sha256(json.dumps(trainings).encode()).hexdigest(),
        "dataset": read_json(flags.dataset),
        "texts": {
            name: read_json(text_folder(flags.dataset.parent, name) / "meta.json")
            for name in flags.config.texts_read
            if name != DATASET
        },
        "device": f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "studies": {"card": {"models": dict.fromkeys(trainings), "probes": {}}},
    }
    tables = Tables(flags.out / "tables", Card.TABLES)
    speed = read_table(flags.out / "speed" / pages.COSTS, SPEED)
    cards = pages.Cards(flags.config, tables, speed, flags.look, origin)
    for norm in flags.config.norm:
        content = {
            "norm": norm,
            "label": ARMS[norm].label,
            "source": ARMS[norm].source,
            "answer": pages.headline(cards, norm),
            "conditions": pages.page_tables(cards, norm)["answer"].texts(),
            "card": flags.config.model_dump(mode="json"),
            "level": flags.look.level,
            "origin": origin,
            "trainings": trainings,
        }
        page, answer = (flags.out / norm / f"card.{end}" for end in ("html", "json"))
        write_text(page, pages.html(cards, norm, flags.templates))
        write_json(answer, content)
        seal(page, answer)


if __name__ == "__main__":
    run_script(main)
