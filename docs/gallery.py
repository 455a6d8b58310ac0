"""The gallery: a table of the norms whose cards are kept, and the card of each.

The mark ``<!-- gallery -->`` in a page is replaced by the origin of the cards and the table. All
numbers are those of the tables that ``make gallery`` keeps in ``evidence/card``.
"""

from functools import cache
from pathlib import Path
from typing import Any

import lesson
import pandas as pd

from normscope.formats import DASH, PERCENT
from normscope.io.files import write_text
from normscope.nn.arms import ARMS, LABELS
from normscope.paper.drawing import Look
from normscope.paper.table import Row, to_rows
from normscope.paper.template import environment, fill
from normscope.statistics.summary import select
from normscope.studies.card import kept
from normscope.studies.card.grid import COMPARED, REFERENCE
from normscope.studies.card.lines import (
    RATIO,
    TYPICAL,
    difference,
    invariances,
    rates,
    regime_words,
)
from normscope.studies.card.tables import NEAR

ROOT = Path(__file__).parents[1]
MARK = "<!-- gallery -->"
PAGE = "gallery"  # the page with the mark
FOLDER = "card"  # of the cards in the site
TEMPLATES = environment(ROOT / "docs", autoescape=True)


def filled(page: str) -> str:
    """A page with the mark replaced by the gallery.

    Raises:
        Explained: The evidence has no cards.
    """
    if MARK not in page:
        return page
    return page.replace(MARK, f"{opening()}\n\n```{{raw}} html\n{front()}\n```")


def front() -> str:
    """The table of norms."""
    return fill(TEMPLATES, "gallery.html.j2", {"titles": titles(), "rows": rows()})


def write_cards(out: Path) -> None:
    """Write the card of every norm to a built site."""
    config, results = lesson.config(), kept_results()
    look = Look(**config.figures.model_dump(), level=results.run.level)
    (out / FOLDER).mkdir(exist_ok=True)
    for norm in results.run.card.norm:
        text = kept.html(results, norm, look, ROOT / "workflow/report")
        write_text(out / link(norm), text)


@cache
def kept_results() -> kept.Kept:
    """The kept tables of the cards, and their origin."""
    return kept.read(lesson.result("claims.json").parent)


def link(norm: str) -> str:
    """The address of a card in the site."""
    return f"{FOLDER}/{norm}.html"


def opening() -> str:
    """The origin of the cards, and what their differences are."""
    run = kept_results().run
    unmeasured = f" and {run.unmeasured_jobs} jobs whose time was not measured"
    return (
        f"The {len(run.card.norm)} cards have the budget {run.card.budget}. They were made on "
        f"{run.date} in {60 * run.core_hours:.0f} core-minutes"
        f"{unmeasured * bool(run.unmeasured_jobs)}, on this machine: {run.chip}. Differences of "
        f"losses are in nats and paired by seed, each with a {PERCENT.text(run.level)} confidence "
        "interval."
    )


def titles() -> list[str]:
    """The titles of the columns."""
    regimes = kept_results().run.card.regimes
    return [
        "norm",
        *(f"loss minus LayerNorm's, {regime_words(name, regimes[name])}" for name in COMPARED),
        f"learning rates within {NEAR} nats of the best",
        "output is invariant",
        f"time of both passes over LayerNorm's, d = {TYPICAL}",
    ]


def rows() -> list[dict[str, Any]]:
    """The norm, label, link and cells of each norm."""
    tables = kept_results().cards.tables
    return [
        {
            "norm": norm,
            "label": LABELS[norm],
            "link": link(norm),
            "outcomes": [outcome(norm, regime) for regime in COMPARED],
            "rates": rates(row(tables["sensitivity"], arm=norm)),
            "invariances": invariances(row(tables["norm"], arm=norm)),
            "time": time(norm),
        }
        for norm in kept_results().run.card.norm
    ]


def row(table: pd.DataFrame, **where: Any) -> Row:
    """The only row of a table with these values."""
    (found,) = to_rows(select(table, **where))
    return found


def outcome(norm: str, regime: str) -> tuple[str, str]:
    """The difference to LayerNorm under a regime, and what it shows."""
    compared = row(kept_results().cards.tables["compared"], arm=norm, regime=regime)
    if norm == REFERENCE:
        return "", compared["reads"]
    return difference(compared), f"{compared['reads']}, n = {compared['pairs']}"


def time(norm: str) -> str:
    """The time of a norm next to torch's LayerNorm; an identity has none."""
    if ARMS[norm].norm.is_identity:
        return DASH
    measured = row(kept_results().cards.speed, arm=norm, width=TYPICAL, mode="eager")
    return RATIO.text(measured["to_layernorm"])
