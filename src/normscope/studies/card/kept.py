"""The cards that the project's site shows, from the tables that ``evidence/card`` keeps."""

from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from normscope.errors import Explained
from normscope.io.tables import Tables, read_table
from normscope.pages.drawing import Look
from normscope.schema import Strict
from normscope.studies.card import pages
from normscope.studies.card.grid import Card
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
    cards: pages.Cards


def read(evidence: Path, look: Look) -> Kept:
    """The results that a folder with evidence keeps.

    Args:
        evidence: The folder.
        look: How figures look; their intervals have the level of the run.

    Raises:
        Explained: A file is missing, or a table does not fit its declaration.
    """
    folder = evidence / FOLDER
    files = [RUN, COSTS, *(f"{name}.csv" for name in TABLES)]
    if missing := [name for name in files if not (folder / name).is_file()]:
        raise Explained(f"{folder} lacks {', '.join(missing)}: run `make gallery`")
    run = Run.model_validate_json((folder / RUN).read_text())
    tables = dict(Tables(folder, TABLES))  # a faulty table is an error now, not at its first use
    look = look.model_copy(update={"level": run.level})
    return Kept(run, pages.Cards(run.card, tables, read_table(folder / COSTS, SPEED), look))


def html(kept: Kept, norm: str, templates: Path) -> str:
    """The card of a norm as an HTML page.

    Args:
        kept: What ``read`` returns.
        norm: One of the norms of its run.
        templates: The directory of the page's templates, workflow/report.
    """
    run = kept.run
    return pages.html(kept.cards, norm, templates, pages.origin(run.card, run.dataset, run.machine))
