"""The sentences and tables of the main study, made from its tables alone."""

import math
from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from normscope import words
from normscope.nn.arms import ARMS
from normscope.paper.caption import count as count_models
from normscope.paper.caption import divergences
from normscope.paper.section import Named, Section
from normscope.paper.table import (
    Column,
    PageTable,
    Row,
    count,
    estimate,
    interval,
    number,
    short,
    tabulate,
    text,
    to_rows,
)
from normscope.statistics.estimate import FEWEST
from normscope.studies.main.figures import arm_label
from normscope.studies.main.grid import Main
from normscope.studies.study import Settings
from normscope.words import DASH

LOSSES = {"mean": "loss", "low": "loss low", "high": "loss high"}
# columns of arms.csv beside the measures of published numbers
OURS = {
    "val_loss": ("mean", "low", "high"),
    "best_val_loss": ("best", "best_low", "best_high"),
}
GAINS = {"first": "first block", "later": "a later block", "last": "last block"}
NOTES = {
    "batch": """BatchNorm's statistics run over all positions while it trains, later ones included;
its validation loss is with running averages, which look at no other token.""",
    "unit": """Unit L2 also ends the network, in pre and in post placement, with outputs of length
1: over a head tied to an embedding that starts with a standard deviation of 0.02, its logits are
small, and its loss is that of a temperature as much as of a norm.""",
    "pointwise": """DyT and Derf start at alpha = 0.5 in nanoGPT's initialization, whose embeddings
have a standard deviation of 0.02: their outputs start near zero. For language models the authors of
DyT tune alpha and scale the embedding by a learned factor that starts at sqrt(d) (Zhu et al. 2025,
arXiv:2503.10622); neither is done here.""",
}


def _name(row: Row) -> str:
    return arm_label(row["arm"], row["placement"])


def loss_table(arms: pd.DataFrame) -> PageTable:
    """Validation loss by arm: n, mean, interval, difference to the baseline and what it shows."""
    columns = [
        Column("arm", _name),
        Column("n", count()),
        Column("loss", number("mean")),
        Column("interval", interval("low", "high")),
        Column("difference", number("difference", sign=True)),
        Column("its interval", interval("difference_low", "difference_high", sign=True)),
        Column("reads", verdict),
    ]
    return tabulate("Validation loss of the trained models", arms, columns)


def verdict(row: Row) -> str:
    """What the difference to the baseline shows.

    A claim needs an interval that excludes 0, seeds enough for an exact test to agree at the same
    level, and no run of the arm that diverged: the survivors are a selection.

    Args:
        row: of arms.csv.
    """
    n, diverged, pairs = row["n"], row["diverged"], row["pairs"]
    if n == 0:
        return "diverged"
    if diverged:
        return f"{diverged} of {diverged + n} diverged: no claim"
    if math.isnan(row["difference"]):
        return "baseline" if pairs else "no seed shared with the baseline"
    if pairs < FEWEST:
        return f"{pairs} seed{'s' if pairs > 1 else ''}: no claim"
    if row["difference_low"] > 0:
        return "worse"
    return "better" if row["difference_high"] < 0 else "not told apart"


def gain_table(gains: pd.DataFrame) -> PageTable:
    """Residual gain of the first block, of a later block, and of the last."""
    blocks = [
        Column(title, estimate(key, f"{key}_low", f"{key}_high")) for key, title in GAINS.items()
    ]
    columns = [Column("arm", _name), Column("n", count()), *blocks]
    return tabulate("Residual gain of the trained models", gains, columns)


def published_table(published: pd.DataFrame, baseline: Row, window_sd: float) -> PageTable:
    """Each published number beside ours, compared only under the settings that it was had with.

    Args:
        published: rows of published.csv.
        baseline: the baseline's row of arms.csv.
        window_sd: standard deviation of the mean losses of validation windows.
    """

    def corrected(row: Row) -> str:
        if not row["comparable"]:
            return "not comparable: other settings"
        if not baseline["n"]:
            return "diverged"
        columns = OURS[row["measure"]]
        mean, low, high = (baseline[column] for column in columns)
        return f"{words.number(mean)} {words.interval(low, high)}"

    def why(row: Row) -> str:
        is_sample = row["windows"] > 0  # NaN: it is none
        if not (row["comparable"] and baseline["n"] and is_sample):
            return row["differs_because"]
        error = window_sd / math.sqrt(row["windows"])
        return f"{row['differs_because']}; the standard error of such a sample is {error:.3f}"

    columns = [
        Column("quantity", text("quantity")),
        Column("as published", short("value")),
        Column("protocol", text("protocol")),
        Column("source", text("source")),
        Column("corrected", corrected),
        Column("n", lambda r: f"{baseline['n']}" if r["comparable"] and baseline["n"] else DASH),
        Column("why they differ", why),
    ]
    return tabulate("Published beside corrected", published, columns)


def notes(arms: Iterable[str]) -> list[str]:
    """What a reader must know of the arms that are there."""
    norms = [ARMS[arm].norm for arm in arms]
    applies = {
        "batch": any(norm.statistic == "batch" for norm in norms),
        "unit": any(norm.radius == "1" for norm in norms),
        "pointwise": any(norm.elementwise for norm in norms),
    }
    return [note for key, note in NOTES.items() if applies[key]]


def _numbers(tables: Mapping[str, pd.DataFrame]) -> Iterator[Named]:
    """Losses and gains by arm and placement, where there is a number."""
    gains = {key: f"{key} gain" for key in GAINS}
    for table, columns in ((tables["arms"], LOSSES), (tables["gain_by_arm"], gains)):
        for row in to_rows(table):
            for column, word in columns.items():
                if pd.notna(row[column]):
                    yield (row["arm"], row["placement"], word), words.number(row[column])


def section(study: Main, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on the models of one arm each.

    Args:
        study: its configuration.
        tables: runs, arms, gain_by_arm, published and corpus.
    """
    runs, arms = tables["runs"], tables["arms"]
    baseline = str(study.reference)
    (ours,) = to_rows(arms[arms["arm"] + "-" + arms["placement"] == baseline])
    of_baseline = runs["arm"] + "-" + runs["placement"] == baseline
    (corpus,) = to_rows(tables["corpus"])
    return Section(
        words={
            **study.model.model_dump(),
            **study.training.model_dump(),
            "baseline": baseline,
            "needed": FEWEST,
            "characters": corpus["characters"],
            "train": f"{corpus['train_tokens']:,}",
            "val": f"{corpus['val_tokens']:,}",
            "count": count_models(runs),
            "divergences": divergences(runs),
            "notes": notes(set(runs["arm"])),
        },
        tables={
            "loss": loss_table(arms),
            "gain": gain_table(tables["gain_by_arm"]),
            "published": published_table(
                tables["published"], ours, runs.loc[of_baseline, "val_loss_window_sd"].mean()
            ),
        },
        numbers=list(_numbers(tables)),
    )
