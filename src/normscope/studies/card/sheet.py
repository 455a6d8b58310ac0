"""A card as Markdown, HTML and PDF, from its tables and its figure."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from normscope.pages.frame import Frame
from normscope.pages.markdown import figure
from normscope.pages.page import page
from normscope.pages.pandoc import github, pdf
from normscope.pages.template import card_text
from normscope.studies.card import pages
from normscope.studies.card.grid import Card
from normscope.studies.card.lines import Cards

FIGURE, TITLE = "card", "Loss above that of LayerNorm, and loss by learning rate"
NOTE = (
    "card.json has these values and the settings of all trainings. Times differ from run to run; "
    "everything else is the same for the same inputs."
)


class Drawing(NamedTuple):
    """The figure of a card."""

    svg: bytes
    caption: str


class Sheet(NamedTuple):
    """A card that is ready to be set.

    Args:
        text: The card in Markdown.
        svgs: The figure by its name.
        templates: The directory of the page's templates, workflow/report.
    """

    text: str
    svgs: Mapping[str, bytes]
    templates: Path

    def markdown(self) -> str:
        """The content of card.md."""
        return github(self.text)

    def html(self, origin: Mapping[str, Any]) -> str:
        """The content of card.html, with a section on the origin of the results."""
        return page(self.templates, self.text, self.svgs, origin)

    def pdf(self) -> bytes:
        """The content of card.pdf."""
        return pdf(self.text, self.templates, self.svgs)


def sheet(cards: Cards, norm: str, drawing: Drawing, templates: Path) -> Sheet:
    """The card of a norm.

    Args:
        cards: The tables of the run.
        norm: The arm whose card it is.
        drawing: Its figure.
        templates: The directory of the page's templates, workflow/report.

    Raises:
        Explained: ``card.md`` has an error, or uses a name that is not known.
    """
    words = pages.words(cards, norm) | {"figures": figure(FIGURE, TITLE, drawing.caption)}
    frame = Frame(words, {}, pages.page_tables(cards, norm), {}, {})
    text = card_text(Path(__file__).parent, frame)
    return Sheet(text, {FIGURE: drawing.svg}, templates)


def origin(config: Card, dataset: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """What a card says of its origin.

    Args:
        config: The norms and the budget.
        dataset: The content of meta.json of the text.
        machine: ``device``, ``python`` and ``packages`` of the run.
    """
    sweeps = config.sweeps()
    decides = {name: sweep.model_dump(mode="json") for name, sweep in sweeps.items()}
    return {
        "note": NOTE,
        "config": decides,
        "config_sha256": hashlib.sha256(json.dumps(decides).encode()).hexdigest(),
        "dataset": dataset,
        **machine,
        "studies": {"card": {"models": dict.fromkeys(sweeps), "probes": {}}},
    }
