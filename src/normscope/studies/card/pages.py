"""The page of a card, made from its tables alone: the answer, the facts, the losses, the cost."""

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from normscope.errors import Explained
from normscope.formats import (
    GENERAL,
    PERCENT,
    SCIENTIFIC,
    SIGNIFICANT,
    Format,
    decimals,
)
from normscope.io.files import read_json
from normscope.io.tables import Tables, read_table
from normscope.nn.arms import ARMS, LABELS
from normscope.pages import style
from normscope.pages.drawing import Look
from normscope.pages.frame import Frame
from normscope.pages.markdown import figure
from normscope.pages.page import page
from normscope.pages.table import (
    Column,
    Field,
    Number,
    PageTable,
    Row,
    as_python,
    estimate,
    field,
    fields_of,
    number,
    setting,
    tabulate,
    text,
    to_rows,
    yes_no,
)
from normscope.pages.template import card_text
from normscope.statistics.summary import select
from normscope.studies.arms import means
from normscope.studies.card.figures import card
from normscope.studies.card.grid import COMPARED, Card
from normscope.studies.card.recipe import REFERENCE, SWEPT
from normscope.studies.card.tables import NEAR, SIGNED, SPEED, TABLES
from normscope.studies.card.tabulate import RELEVANT, outcome

FIGURE, TITLE = "card", "Loss above that of LayerNorm by condition, and loss by learning rate"
KEPT, RUN, COSTS = "card", "run.json", "speed.csv"  # in the evidence
RATIO, MILLIONS = decimals(2), decimals(1)
UNCHANGED = 1e-3  # relative change of an output, below which it counts as none
TYPICAL = 1024  # the width whose speed is among the facts
DEEP = {"depth": 48, "init": "xavier"}  # the untrained networks that are among the facts
ARM = field("norm", lambda row: LABELS[row["arm"]])


class Cards(NamedTuple):
    """What the cards of a run are made from.

    Args:
        config: The card's part of the configuration.
        tables: Its tables by name.
        speed: The table of costs.
        look: How the figure looks.
        origin: Where the results come from, as ``normscope.pages.page.facts`` shows it.
    """

    config: Card
    tables: Mapping[str, pd.DataFrame]
    speed: pd.DataFrame
    look: Look
    origin: Mapping[str, Any]


def kept_cards(evidence: Path, look: Look) -> Cards:
    """The cards that a folder with evidence keeps, which the project's site shows.

    Args:
        look: How figures look; their intervals have the level of the run.

    Raises:
        Explained: A file is missing, or a table does not fit its declaration.
    """
    folder = evidence / KEPT
    files = [RUN, COSTS, *(f"{name}.csv" for name in TABLES)]
    if missing := [name for name in files if not (folder / name).is_file()]:
        raise Explained(f"{folder} lacks {', '.join(missing)}: run `make gallery`")
    run = read_json(folder / RUN)
    tables = dict(Tables(folder, TABLES))  # a faulty table is an error now, not at its first use
    look = look.model_copy(update={"level": run["level"]})
    costs = read_table(folder / COSTS, SPEED)
    return Cards(Card.model_validate(run["card"]), tables, costs, look, run["origin"])


def html(cards: Cards, norm: str, templates: Path) -> str:
    """The card of a norm.

    Args:
        templates: The directory of the page's templates, workflow/report.

    Raises:
        Explained: ``card.md`` has an error, or uses a name that is not known.
    """
    svg, caption = drawing(cards, norm)
    words = page_words(cards, norm) | {"figures": figure(FIGURE, TITLE, caption)}
    frame = Frame(words, {}, page_tables(cards, norm), {}, {})
    return page(templates, card_text(Path(__file__).parent, frame), {FIGURE: svg}, cards.origin)


def drawing(cards: Cards, norm: str) -> tuple[bytes, str]:
    """The figure of a card as SVG, and its caption."""
    style.use(cards.look.font_pt)
    others = [arm for arm in cards.config.regimes[SWEPT].others if arm != norm]
    names = {regime: condition(cards, {"regime": regime}) for regime in COMPARED}
    drawn, caption = card.draw(cards.tables, cards.look, norm, others, names)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, FIGURE)
        style.save(drawn, path)
        return path.with_suffix(".svg").read_bytes(), caption


DIFFERENCE = estimate(
    "difference from LayerNorm", "difference", "difference_low", "difference_high", SIGNED
)
ANSWERS = {
    "same": "trains as well as",
    "better": "trains better than",
    "worse": "trains worse than",
    "fails": "trains less reliably than",
    "undecided": "may train better or worse than",
}


def answers(cards: Cards, norm: str) -> list[Row]:
    """The comparisons with LayerNorm that answer a card's question, the longest training first."""
    rows = to_rows(select(cards.tables["compared"], arm=norm))
    steps = {name: -cards.config.regimes[name].steps for name in COMPARED}
    rows = [row for row in rows if row["regime"] in steps]
    return sorted(rows, key=lambda row: steps[row["regime"]])


def headline(cards: Cards, norm: str) -> str:
    """The answer of a card in one line, which rests on the longest training."""
    if norm == REFERENCE:
        return f"{LABELS[norm]} is the norm that the others are compared with"
    row, *others = answers(cards, norm)
    shown, regime = outcome(row), row["regime"]
    cells = select(cards.tables["compared"], regime=regime)
    is_at_edge = cells["at_edge"][cells["arm"].isin([norm, REFERENCE])].any()
    unlike = [one for one in others if outcome(one) != shown]
    n = row["texts"]
    parts = [
        row["reads"] if shown in ("fails", "undecided") else "",
        f"{DIFFERENCE.column.text(DIFFERENCE.cell(row))} nats, n = {n} text{'s' * (n != 1)}",
        "at the learning rates tried" if is_at_edge else "",
    ]
    return (
        f"{LABELS[norm]} {ANSWERS[shown]} {LABELS[REFERENCE]}{' here' * (not unlike)} after "
        f"{cards.config.regimes[regime].steps:,} steps: {', '.join(filter(None, parts))}"
        + "".join(f"; {condition(cards, one)}: {one['reads']}" for one in unlike)
    )


def condition(cards: Cards, row: Row) -> str:
    """What tells a regime from the others, such as ``300 steps``, ``4 blocks`` or ``batch 1``."""
    one, swept = cards.config.regimes[row["regime"]], cards.config.regimes[SWEPT]
    if row["regime"] not in COMPARED:
        return row["regime"].replace("_", " ")
    return f"{one.n_layer} blocks" if one.n_layer != swept.n_layer else f"{one.steps:,} steps"


def page_words(cards: Cards, norm: str) -> dict[str, Any]:
    """The words of the card's template."""
    config, runs, custom = cards.config, cards.tables["runs"], ARMS[norm].norm.custom
    return {
        "label": LABELS[norm],
        "norm": norm,
        "source": ARMS[norm].source,
        "headline": headline(cards, norm),
        "is_reference": norm == REFERENCE,
        "relevant": RELEVANT,
        "unchanged": UNCHANGED,
        "parameters": Number(runs["parameters"].max() / 1e6, MILLIONS),
        "inexact": custom is not None and not custom.is_exact,
        "budget": config.budget,
        "level": Number(cards.look.level, PERCENT),
        "models": Number(len(runs) + len(cards.tables["trials"]), GENERAL),
        "texts": ", ".join(dict.fromkeys(runs["text"])),
        "pilot_texts": ", ".join(dict.fromkeys(cards.tables["trials"]["text"])),
        "regimes": [
            {"name": condition(cards, {"regime": name}), **regime.model_dump()}
            | {"rates": ", ".join(f"{rate:g}" for rate in regime.learning_rates)}
            for name, regime in config.regimes.items()
        ],
    }


def page_tables(cards: Cards, norm: str) -> dict[str, PageTable]:
    """The tables of the card by name."""
    others = cards.config.regimes[SWEPT].others
    shown = list(dict.fromkeys([norm, *others, *cards.config.norm]))
    losses = cards.tables["compared"]
    compared = [
        field("condition", lambda row: condition(cards, row)),
        *(DIFFERENCE, *fields_of(TABLES["compared"], "texts"), text("result", "reads")),
        setting("learning rate"),
    ]
    more = fields_of(TABLES["compared"], "failed", "mean", "resolved")
    rows = answers(cards, norm) if norm != REFERENCE else []
    return {
        "answer": tabulate("Validation loss, less that of LayerNorm", rows, compared),
        "facts": facts_table(cards, list(dict.fromkeys([norm, *others]))),
        "compared": tabulate("Losses", losses[losses["arm"].isin(shown)], [ARM, *compared, *more]),
    }


def labels(names: str) -> str:
    """The labels of arms whose names have spaces between them."""
    return ", ".join(ARMS[name].label for name in names.split())


def rates(row: Row) -> str | None:
    """The range of learning rates in a row of table sensitivity."""
    if math.isnan(row["from"]):
        return None
    return f"{row['from']:g}" + f" to {row['to']:g}" * (row["to"] > row["from"])


def change(title: str, name: str) -> Field:
    """A fact about how much the output changes."""
    return field(title, lambda row: "none" if row[name] < UNCHANGED else row[name], SCIENTIFIC)


LOG = Format("scientific", log=True)
FACTS = (
    number("best learning rate", "best", GENERAL),
    field(f"learning rates within {NEAR} nats of it", rates),
    number("largest learning rate at which no model failed", "stable", GENERAL),
    text("nearest built-in norm", "nearest", label=labels),
    change("its outputs differ by", "difference"),
    number("parameters at this width", "parameters", GENERAL),
    change("change of the output for tokens ten times as large", "scale"),
    change("for tokens shifted by a number in all channels", "shift"),
    change("between rotating its input and its output", "rotation"),
    change("if the other tokens of the window change", "tokens"),
    change("if the other windows of the batch change", "batch"),
    yes_no("each channel is mapped by itself", "elementwise"),
    number("share of the gradient along 1, at its output", "mean_in", PERCENT),
    number("at its input", "mean_out", PERCENT),
    number("share of the gradient along the token, at its output", "radial_in", PERCENT),
    number("at its input", "radial_out", PERCENT),
    number("growth of the stream over 48 untrained blocks", "stream", LOG),
    number("gradient at the second of them over that at the last", "gradient", LOG),
    number("residual gain of the last trained block", "last_gain", SIGNIFICANT),
    number("time of both passes, over torch's LayerNorm", "to_layernorm", RATIO),
    number("over torch's RMSNorm", "to_rmsnorm", RATIO),
    number("share of a training step", "step", PERCENT),
)


def facts_table(cards: Cards, shown: list[str]) -> PageTable:
    """One row per fact, with a column per norm; means are over models and layers."""
    tables = cards.tables
    growth = select(tables["growth"], **DEEP)
    growth = growth.assign(**{name: growth[name].map(log) for name in ("stream", "gradient")})
    shares = ["mean_in", "mean_out", "radial_in", "radial_out"]
    trained = select(tables["layers"], state="trained")
    typical = select(cards.speed, width=TYPICAL, mode="eager")
    parts = [
        tables["sensitivity"].drop(columns="largest"),
        tables["norm"],
        means(trained, ["arm"], shares)[["arm", *shares]],
        means(growth, ["arm"], ["stream", "gradient"])[["arm", "stream", "gradient"]],
        means(tables["outputs"], ["arm"], ["last_gain"])[["arm", "last_gain"]],
        typical[["arm", "to_layernorm", "to_rmsnorm", "step"]],
    ]
    table = pd.concat([part.set_index("arm") for part in parts], axis=1).reindex(shown)
    facts = [
        (column.title, *(column.text(as_python(cell(row))) for row in to_rows(table)))
        for column, cell in FACTS
    ]
    columns = (Column("fact"), *(Column(LABELS[arm]) for arm in shown))
    return PageTable("Facts", columns, tuple(facts))


def log(value: float) -> float:
    """The logarithm; NaN of what is not positive and finite, such as a gradient that vanishes."""
    return math.log(value) if 0 < value < math.inf else math.nan
