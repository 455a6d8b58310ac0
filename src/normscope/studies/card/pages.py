"""The words and tables of a card, made from its tables alone."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from normscope.formats import DASH, GENERAL, PERCENT, Format
from normscope.nn.arms import ARMS, LABELS
from normscope.pages.table import (
    Number,
    PageTable,
    count,
    declared,
    derived,
    estimate,
    number,
    setting,
    tabulate,
    text,
    to_rows,
)
from normscope.studies.arms import mean, means
from normscope.studies.card.grid import COMPARED, SWEPT
from normscope.studies.card.lines import (
    RATIO,
    Cards,
    Statement,
    first_lines,
    labels,
    regime_words,
)
from normscope.studies.card.statements import statements
from normscope.studies.card.tables import SIGNED, TABLES


def asked(ledger: Mapping[str, Any] | None) -> dict[str, Statement]:
    """The statements that a card asks, by key, with what a ledger (claims.json) says of them."""
    unknown = {key: Statement(key, DASH, DASH) for key in statements()}
    claims = ledger["claims"] if ledger else []
    return unknown | {
        one["key"]: Statement(one["statement"], one["document"], one["verdict"]) for one in claims
    }


def words(cards: Cards, norm: str) -> dict[str, Any]:
    """The words of the card's template."""
    config = cards.config
    return {
        "label": LABELS[norm],
        "norm": norm,
        "source": ARMS[norm].source,
        "budget": config.budget,
        "level": Number(cards.level, PERCENT),
        "lines": first_lines(cards, norm),
        "several": len(config.norm) > 1,
        "models": Number(len(cards.tables["runs"]) + len(cards.tables["trials"]), GENERAL),
        "regimes": [
            {
                "name": name.replace("_", " "),
                "words": regime_words(name, regime),
                "rates": ", ".join(f"{rate:g}" for rate in regime.learning_rates),
                "pilots": regime.pilots,
                "seeds": regime.seeds,
            }
            for name, regime in config.regimes.items()
        ],
    }


def page_tables(cards: Cards, norm: str) -> dict[str, PageTable]:
    """The tables of the card by name."""
    shown = list(dict.fromkeys([norm, *cards.config.regimes[SWEPT].others]))
    tables = {
        name: table[table["arm"].isin(shown)] if "arm" in table else table
        for name, table in cards.tables.items()
    }
    return {
        "compared": compared_table(select_regimes(tables["compared"], COMPARED), "Loss by regime"),
        "variations": compared_table(
            select_regimes(tables["compared"], set(cards.config.regimes) - set(COMPARED)),
            "Loss under other conditions",
        ),
        "several": several_table(cards),
        "sensitivity": tabulate(
            "Learning rates",
            tables["sensitivity"],
            [ARM, *declared(TABLES["sensitivity"], "best", "from", "to", "stable", "largest")],
        ),
        "function": function_table(tables["norm"]),
        "identity": identity_table(tables["norm"]),
        "gradients": gradient_table(tables["layers"]),
        "growth": growth_table(tables["growth"]),
        "outputs": output_table(tables["outputs"]),
        "statements": statement_table(tables["statements"], cards.ledger),
        "speed": speed_table(cards.speed[cards.speed["arm"].isin(shown)]),
    }


ARM = derived("norm", lambda row: LABELS[row["arm"]])


def select_regimes(table: pd.DataFrame, regimes: Any) -> pd.DataFrame:
    """The rows of some regimes."""
    return table[table["regime"].isin(list(regimes))]


def compared_table(rows: pd.DataFrame, title: str) -> PageTable:
    """Losses by regime and norm, with the differences to LayerNorm."""
    return tabulate(
        title,
        rows,
        [
            text("regime", label=lambda name: name.replace("_", " ")),
            ARM,
            *declared(TABLES["compared"], "n"),
            setting("learning rate"),
            *declared(TABLES["compared"], "failed", "mean"),
            estimate("minus LayerNorm", "difference", "difference_low", "difference_high", SIGNED),
            *declared(TABLES["compared"], "resolved", "reads"),
        ],
    )


def several_table(cards: Cards) -> PageTable:
    """Losses of all norms of the run."""
    rows = select_regimes(cards.tables["compared"], COMPARED)
    return compared_table(rows[rows["arm"].isin(cards.config.norm)], "The norms of this run")


def gradient_table(layers: pd.DataFrame) -> PageTable:
    """What each norm layer does to the gradient, before and after training."""
    measures = [column.name for column in TABLES["layers"].columns if column.role != "key"]
    rows = means(layers, ["arm", "state", "layer"], measures)
    return tabulate(
        "Gradient at each norm",
        rows,
        [
            ARM,
            text("state"),
            text("layer"),
            number("along 1, in", "mean_in", PERCENT),
            number("along 1, out", "mean_out", PERCENT),
            number("along token, in", "radial_in", PERCENT),
            number("along token, out", "radial_out", PERCENT),
            number("rest, in", "rest_in", PERCENT),
            number("rest, out", "rest_out", PERCENT),
            *declared(TABLES["layers"], "input_rms", "largest", "smallest", "saturated"),
        ],
    )


def growth_table(growth: pd.DataFrame) -> PageTable:
    """Growth of the stream and of the gradient in untrained networks, geometric means."""
    logs = growth.assign(**{name: growth[name].map(log) for name in ("stream", "gradient")})
    rows = means(logs, ["arm", "init", "depth"], ["stream", "gradient"])
    form = Format("scientific", log=True)
    return tabulate(
        "Untrained networks",
        rows,
        [
            *(ARM, text("start", "init"), count("blocks", "depth"), count("n")),
            mean("stream, last over first", "stream", form),
            mean("gradient, second over last", "gradient", form),
        ],
    )


def log(value: float) -> float:
    """The logarithm; NaN of what is not positive and finite, such as a gradient that vanishes."""
    return math.log(value) if 0 < value < math.inf else math.nan


def function_table(norms: pd.DataFrame) -> PageTable:
    """What the outputs depend on."""
    return tabulate(
        "Relative change of the output",
        norms,
        [
            ARM,
            *declared(TABLES["norm"], "scale", "shift", "rotation", "tokens", "batch"),
            *declared(TABLES["norm"], "elementwise", "parameters"),
        ],
    )


def identity_table(norms: pd.DataFrame) -> PageTable:
    """The nearest known norms."""
    return tabulate(
        "Nearest built-in norm",
        norms,
        [
            ARM,
            text("nearest", label=labels),
            *declared(TABLES["norm"], "difference", "large", "starts"),
        ],
    )


def output_table(outputs: pd.DataFrame) -> PageTable:
    """The last block and the logits of the trained models, means over models."""
    return tabulate(
        "Trained models",
        means(outputs, ["arm"], ["last_gain", "logit_rms", "logit_max"]),
        [
            *(ARM, count("n")),
            mean("gain of the last block", "last_gain"),
            mean("RMS of the logits", "logit_rms"),
            mean("largest logit", "logit_max"),
        ],
    )


def speed_table(speed: pd.DataFrame) -> PageTable:
    """Times and memory next to those of torch's norms."""
    return tabulate(
        "Cost",
        speed,
        [
            ARM,
            count("d", "width"),
            text("mode"),
            number("forward", "forward", RATIO),
            number("backward", "backward", RATIO),
            number("both, to LayerNorm", "to_layernorm", RATIO),
            number("both, to RMSNorm", "to_rmsnorm", RATIO),
            number("kept", "saved", RATIO),
            number("kept by LayerNorm", "saved_layernorm", RATIO),
            number("kept by RMSNorm", "saved_rmsnorm", RATIO),
            number("share of a step", "step", PERCENT),
        ],
    )


def statement_table(rows: pd.DataFrame, ledger: Mapping[str, Statement]) -> PageTable:
    """The published statements, with their verdicts here and in the ledger."""
    return tabulate(
        "Published statements",
        rows,
        [
            ARM,
            derived("statement", lambda row: ledger[row["statement"]].words),
            derived("document", lambda row: ledger[row["statement"]].document),
            derived("asked here", lambda row: statements()[row["statement"]].asks),
            derived("agree", lambda row: f"{row['agree']} of {row['n']}"),
            *declared(TABLES["statements"], "median", "verdict"),
            derived("in the ledger", lambda row: ledger[row["statement"]].verdict),
        ],
    )


def records(cards: Cards, norm: str) -> dict[str, Any]:
    """The card for machines: its lines, and the rows of all tables."""
    tables = {name: list(clean(table)) for name, table in cards.tables.items()}
    return {
        "norm": norm,
        "label": LABELS[norm],
        "source": ARMS[norm].source,
        "budget": cards.config.budget,
        "lines": first_lines(cards, norm),
        "tables": tables | {"speed": list(clean(cards.speed))},
    }


def clean(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Rows whose missing values are None."""
    for row in to_rows(table.astype(object)):
        yield {key: value if _is_known(value) else None for key, value in row.items()}


def _is_known(value: Any) -> bool:
    return math.isfinite(value) if isinstance(value, float) else not pd.isna(value)
