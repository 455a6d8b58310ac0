"""The cards that the project's site shows, from the tables that ``evidence/card`` keeps."""

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from normscope.errors import Explained
from normscope.io.tables import Tables, read_table
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.schema import Strict
from normscope.studies.card import sheet
from normscope.studies.card.figures import card
from normscope.studies.card.grid import Card
from normscope.studies.card.lines import Cards
from normscope.studies.card.pages import asked
from normscope.studies.card.tables import SPEED, TABLES

FOLDER, RUN, COSTS = "card", "run.json", "speed.csv"
MACHINE = ("device", "python", "packages")


class Run(Strict):
    """The content of run.json: what was run, where and when."""

    card: Card
    level: float = Field(description="confidence level of the intervals")
    chip: str
    date: str
    core_hours: float
    unmeasured_jobs: int = Field(description="jobs that core_hours leaves out")
    config_sha256: str = Field(description="of the settings of all trainings")
    dataset: dict[str, Any] = Field(description="the content of meta.json of the text")
    machine: dict[str, Any] = Field(description="its device, python and packages")


class Kept(NamedTuple):
    """The kept results of a run."""

    run: Run
    cards: Cards


def read(evidence: Path) -> Kept:
    """The results that a folder with evidence keeps.

    Raises:
        Explained: A file is missing, or a table does not fit its declaration.
        OSError: The evidence has no ledger.
    """
    folder = evidence / FOLDER
    files = [RUN, COSTS, *(f"{name}.csv" for name in TABLES)]
    if missing := [name for name in files if not (folder / name).is_file()]:
        raise Explained(f"{folder} lacks {', '.join(missing)}: run `make gallery`")
    run = Run.model_validate_json((folder / RUN).read_text())
    ledger = asked(json.loads((evidence / "claims.json").read_text()))
    speed = read_table(folder / COSTS, SPEED)
    tables = dict(Tables(folder, TABLES))  # a faulty table is an error now, not at its first use
    return Kept(run, Cards(run.card, tables, speed, ledger, run.level))


def drawing(cards: Cards, norm: str, look: Look) -> sheet.Drawing:
    """The figure of a norm's card, as rule card_figure draws it."""
    style.use(look.font_pt)
    tables = {name: cards.tables[name] for name in Card.DRAWN}
    figure, caption = card.draw(tables, look, **cards.config.figure(norm))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, sheet.FIGURE)
        style.save(figure, path)
        return sheet.Drawing(path.with_suffix(".svg").read_bytes(), caption)


def html(kept: Kept, norm: str, look: Look, templates: Path) -> str:
    """The card of a norm as an HTML page.

    Args:
        kept: What ``read`` returns.
        norm: One of the norms of its run.
        look: How the figure looks.
        templates: The directory of the page's templates, workflow/report.
    """
    made = sheet.sheet(kept.cards, norm, drawing(kept.cards, norm, look), templates)
    return made.html(sheet.origin(kept.run.card, kept.run.dataset, kept.run.machine))
