"""The five sentences that a card begins with, and what they are made from."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from normscope.formats import PERCENT, decimals
from normscope.measure.properties import INVARIANT, SAME
from normscope.nn.arms import ARMS
from normscope.nn.norms import build
from normscope.nn.recipe import PLACEMENTS, Norm
from normscope.pages.table import Row, to_rows
from normscope.statistics.levels import FEWEST
from normscope.statistics.summary import select
from normscope.studies.card.grid import COMPARED, REFERENCE, SWEPT, Card, Regime
from normscope.studies.card.tables import NEAR, SIGNED

RATIO = decimals(2)
TYPICAL = 1024  # the width whose speed the first lines name
UNCHANGED = {  # what an output may be invariant to, by the column of table norm
    "scale": "the scale of its input",
    "shift": "a shift of all channels",
}
OTHERS = {"tokens": "the other tokens of its window", "batch": "the other windows of the batch"}
NOT_MEASURED = "not measured"
SHARES = ("mean_in", "mean_out", "radial_in", "radial_out")


class Statement(NamedTuple):
    """What the ledger says of a statement that a card asks."""

    words: str
    document: str
    verdict: str


class Cards(NamedTuple):
    """What a card is made from.

    Args:
        config: The card's part of the configuration.
        tables: Its tables by name.
        speed: The table of costs.
        ledger: Statements by key, from the project's evidence.
        level: Confidence level of the intervals.
    """

    config: Card
    tables: Mapping[str, pd.DataFrame]
    speed: pd.DataFrame
    ledger: Mapping[str, Statement]
    level: float


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def regime_words(name: str, regime: Regime) -> str:
    """A regime in words, such as ``2 blocks of width 64, 300 steps``."""
    sizes = f"{regime.n_layer} blocks of width {regime.n_embd}, {regime.steps:,} steps"
    default = Regime()
    parts = [sizes] if name in COMPARED else []
    if regime.placement != default.placement:
        parts.append(PLACEMENTS[regime.placement])
    if not regime.warmup_steps:
        parts.append("no warm-up")
    if regime.batch_size != default.batch_size:
        parts.append(f"batch size {regime.batch_size}")
    return ", ".join(parts)


def first_lines(cards: Cards, norm: str) -> list[str]:
    """Five sentences that say what a reviewer would want to know."""
    return [
        training_line(cards, norm),
        sensitivity_line(cards.tables["sensitivity"], norm),
        function_line(cards.tables, norm),
        cost_line(cards.speed, norm),
        identity_line(cards.tables["norm"], norm, cards.config.regimes[SWEPT].n_embd),
    ]


def training_line(cards: Cards, norm: str) -> str:
    """Whether it trains as well as LayerNorm, by size and length of training."""
    if norm == REFERENCE:
        return "Training: this is the norm that the others are compared with."
    parts = []
    for regime in COMPARED:
        (row,) = to_rows(select(cards.tables["compared"], arm=norm, regime=regime))
        size = regime_words(regime, cards.config.regimes[regime])
        parts.append(f"{row['reads']}: {difference(row)} ({size}; n = {row['pairs']})")
    line = f"Training: {'; '.join(parts)}. Numbers are losses minus LayerNorm's, in nats."
    return f"{line} {with_length(cards, norm)}".strip()


def difference(row: Row) -> str:
    """A difference of losses with its interval."""
    bounds = f"{SIGNED.text(row['difference_low'])}, {SIGNED.text(row['difference_high'])}"
    return f"{SIGNED.text(row['difference'])} [{bounds}]"


def with_length(cards: Cards, norm: str) -> str:
    """How the difference to LayerNorm changes with the length of training, if it does."""
    short, long = (
        to_rows(select(cards.tables["compared"], arm=norm, regime=regime))[0]
        for regime in COMPARED[:2]
    )
    few, many = (f"{cards.config.regimes[regime].steps:,}" for regime in COMPARED[:2])
    if min(short["pairs"], long["pairs"]) < FEWEST:
        return ""
    if short["failed"] > long["failed"]:
        failed = f"{short['failed']:.0f} of {short['n']:.0f} models fail"
        still = f"{long['failed']:.0f} of {long['n']:.0f} do" if long["failed"] else "none does"
        return f"After {few} steps, {failed}; after {many} steps, {still}."
    if short["failed"] and long["failed"]:
        return f"Models fail after {few} and after {many} steps."
    if long["difference_high"] < short["difference_low"]:
        return f"After {many} steps it is better, next to LayerNorm, than after {few}."
    if long["difference_low"] > short["difference_high"]:
        return f"After {many} steps it is worse, next to LayerNorm, than after {few}."
    return ""


def sensitivity_line(table: pd.DataFrame, norm: str) -> str:
    """Its range of learning rates and its largest stable one, next to LayerNorm's."""
    rows = {row["arm"]: row for row in to_rows(table)}
    line = f"Learning rates within {NEAR} nats of the best: {rates(rows[norm])}"
    return f"{line}." if norm == REFERENCE else f"{line} (LayerNorm {rates(rows[REFERENCE])})."


def rates(row: Row) -> str:
    """The range of learning rates in a row of table sensitivity, and the largest stable one."""
    if math.isnan(row["from"]):
        return "none, as no rate taught it more than character frequencies"
    stable = "none" if math.isnan(row["stable"]) else f"{row['stable']:g}"
    if row["stable"] == row["largest"]:
        stable += ", the largest tried"
    near = f"{row['from']:g}" + (f" to {row['to']:g}" if row["to"] > row["from"] else " alone")
    return f"{near}; largest without a failure: {stable}"


def invariances(row: Row) -> str:
    """To what an output is invariant, from a row of table norm."""
    if any(math.isnan(row[column]) for column in UNCHANGED):
        return NOT_MEASURED
    same = [words for column, words in UNCHANGED.items() if row[column] < INVARIANT]
    return f"to {listed(same)}" if same else f"neither to {' nor to '.join(UNCHANGED.values())}"


def function_line(tables: Mapping[str, pd.DataFrame], norm: str) -> str:
    """What its output depends on, and what it removes from the gradient."""
    (row,) = to_rows(select(tables["norm"], arm=norm))
    parts = list(dependence(row))
    means = select(tables["layers"], arm=norm, state="trained")[list(SHARES)].mean()
    if means.notna().all():
        shares = {name: f"{100 * value:.1f}%" for name, value in means.items()}
        parts.append(
            f"of the gradient in trained models, {shares['mean_in']} is the mean over channels at "
            f"its output and {shares['mean_out']} at its input, and along the token "
            f"{shares['radial_in']} and {shares['radial_out']} (of a random direction, "
            f"{100 / Regime().n_embd:.1f}%)"
        )
    return f"Function: {'; '.join(parts)}."


def dependence(row: Row) -> Iterator[str]:
    """What an output depends on, from a row of table norm."""
    if any(math.isnan(row[column]) for column in (*UNCHANGED, *OTHERS, "rotation")):
        yield f"what its output is invariant to was {NOT_MEASURED}: it is 0, or has too few digits"
        return
    yield f"its output is invariant {invariances(row)}"
    if row["rotation"] < INVARIANT:
        yield "it commutes with rotations of the channels"
    own = "channel of a token" if row["elementwise"] else "token"
    seen = [words for column, words in OTHERS.items() if row[column] >= INVARIANT]
    yield f"it depends on {listed(seen)}" if seen else f"each {own} is mapped separately"


def cost_line(speed: pd.DataFrame, norm: str) -> str:
    """Its time next to torch's norms, and its share of a training step."""
    rows = to_rows(select(speed, arm=norm, width=TYPICAL, mode="eager"))
    if not rows:
        return "Cost: none."
    (row,) = rows
    if any(math.isnan(row[column]) for column in ("to_layernorm", "to_rmsnorm", "step")):
        return f"Cost: {NOT_MEASURED}."
    return (
        f"Cost: at d = {TYPICAL}, not compiled, both passes take "
        f"{RATIO.text(row['to_layernorm'])} times as long as those of torch's LayerNorm and "
        f"{RATIO.text(row['to_rmsnorm'])} times as long as those of its RMSNorm; at d = 64, they "
        f"take {PERCENT.text(row['step'])} of a training step."
    )


def labels(names: str) -> str:
    """The labels of arms whose names have spaces between them."""
    return listed([ARMS[name].label for name in names.split()])


def identity_line(table: pd.DataFrame, norm: str, d: int) -> str:
    """Which known norm it is, or is nearest to.

    Args:
        table: Table norm.
        norm: An arm.
        d: Channels of the norms in the table.
    """
    (row,) = to_rows(select(table, arm=norm))
    custom = ARMS[norm].norm.custom
    line = f"Identity: {identity(row, d)}."
    if custom is None or custom.is_exact:
        return line
    return f"{line} Its backward pass is not the derivative of its forward pass."


def identity(row: Row, d: int) -> str:
    """What a norm is, from a row of table norm."""
    if math.isnan(row["difference"]):
        return f"{NOT_MEASURED}, as its output is not finite"
    if pd.isna(row["nearest"]):
        return "no known norm computes nearly the same"
    first = ARMS[row["nearest"].split()[0]]
    same = "the identity" if first.norm.is_identity else first.label
    same += parameters(row, first.norm, d)
    differs = f"its output differs by {row['difference']:.2g} of its size"
    if row["difference"] < SAME:
        return f"this is {same}"
    if row["large"] < SAME:
        return f"for large tokens, this is {same}; at sizes from 0.1 to 3, {differs}"
    return f"no known norm computes the same; nearest: {labels(row['nearest'])}; {differs}"


def parameters(row: Row, known: Norm, d: int) -> str:
    """How its parameters differ from those of the norm that computes the same."""
    if not pd.isna(row["starts"]):
        return "" if row["starts"] else ", with other starting values"
    more = int(row["parameters"]) - sum(p.numel() for p in build(known, d).parameters())
    return f", with {abs(more)} parameter{'s'[: abs(more) != 1]} {'more' if more > 0 else 'fewer'}"
