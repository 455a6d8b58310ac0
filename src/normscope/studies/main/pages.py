"""The sentences and tables of the main study, made from its tables alone."""

import math
from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from normscope import words
from normscope.nn.arms import ARMS
from normscope.paper.section import Named, Section
from normscope.paper.table import (
    Column,
    PageTable,
    Row,
    count,
    estimate,
    interval,
    number,
    setting,
    short,
    tabulate,
    text,
    to_rows,
)
from normscope.statistics.estimate import FEWEST
from normscope.statistics.summary import describe, select, split
from normscope.studies.arms import count as count_models
from normscope.studies.main.figures import arm_label
from normscope.studies.main.grid import NANOGPT, Main
from normscope.studies.study import Settings
from normscope.words import DASH

BY = ("arm", "placement", "learning_rate")
LOSSES = {"mean": "loss", "low": "loss low", "high": "loss high"}
LOSS = "Validation loss of the trained models"
GAINS = {"first": "first block", "later": "a later block", "last": "last block"}
NOTES = {
    "batch": """BatchNorm's statistics run over all positions while it trains, later ones included;
its validation loss is with running averages, which look at no other token.""",
    "unit": """Unit L2 also ends the network, in pre and in post placement, with outputs of length
1: over a head tied to an embedding that starts with a standard deviation of 0.02, its logits are
small, and its loss is that of a temperature as much as of a norm. With scaled logits a learned
factor, sqrt(d) at the start, takes that away (Wang et al. 2017, arXiv:1704.06369).""",
    "pointwise": """DyT and Derf alone start at alpha = 0.5 in nanoGPT's initialization, whose
embeddings have a standard deviation of 0.02: their outputs start near zero. With a scaled embedding
they are as their authors have them for language models: a learned factor of the embedding, sqrt(d)
at the start, and alpha = 1 (Zhu et al. 2025, arXiv:2503.10622).""",
}


def _name(row: Row) -> str:
    return arm_label(row["arm"], row["placement"])


def loss_table(arms: pd.DataFrame, title: str = LOSS) -> PageTable:
    """Validation loss by arm: n, rate, loss, difference to the baseline and what it shows.

    Args:
        arms: rows of arms.csv, of one protocol.
        title: of the table.
    """
    columns = [
        Column("arm", _name),
        Column("n", count()),
        Column("rates", count("rates")),
        Column("learning rate", setting()),
        Column("failed", count("failed")),
        Column("loss", number("mean")),
        Column("interval", interval("low", "high")),
        Column("difference", number("difference", sign=True)),
        Column("its interval", interval("difference_low", "difference_high", sign=True)),
        Column("reads", verdict),
    ]
    return tabulate(title, arms, columns)


def verdict(row: Row) -> str:
    """What the difference to the baseline shows.

    A claim needs an interval that excludes 0 and seeds enough.

    Args:
        row: of arms.csv.
    """
    pairs = row["pairs"]
    if math.isnan(row["difference"]):
        return "baseline" if pairs else "no seed shared with the baseline"
    if pairs < FEWEST:
        return f"{pairs} seed{'s' if pairs > 1 else ''}: no claim"
    if row["difference_low"] > 0:
        return "worse at the rates tried" if row["at_edge"] else "worse"
    return "better" if row["difference_high"] < 0 else "not told apart"


def gain_table(gains: pd.DataFrame, protocol: str) -> PageTable:
    """Residual gain of the first block, of a later block, and of the last."""
    blocks = [
        Column(title, estimate(key, f"{key}_low", f"{key}_high")) for key, title in GAINS.items()
    ]
    columns = [Column("arm", _name), Column("n", count()), *blocks]
    return tabulate(f"Residual gain of the trained models, {protocol}", gains, columns)


def published_table(published: pd.DataFrame, window_sd: float) -> PageTable:
    """Each published number beside ours, compared only under the settings that it was had with.

    Args:
        published: rows of published.csv.
        window_sd: standard deviation of the mean losses of validation windows.
    """

    def corrected(row: Row) -> str:
        if not row["comparable"]:
            return "not comparable: other settings"
        if not row["n"]:
            return "diverged"
        return f"{words.number(row['mean'])} {words.interval(row['low'], row['high'])}"

    def why(row: Row) -> str:
        is_sample = row["windows"] > 0  # NaN: it is none
        if not (row["n"] and is_sample):
            return row["differs_because"]
        error = window_sd / math.sqrt(row["windows"])
        return f"{row['differs_because']}; the standard error of such a sample is {error:.3f}"

    columns = [
        Column("quantity", text("quantity")),
        Column("as published", short("value")),
        Column("protocol", text("protocol")),
        Column("source", text("source")),
        Column("corrected", corrected),
        Column("n", lambda r: f"{r['n']}" if r["n"] else DASH),
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
    """Losses and gains by protocol, arm and placement, where there is a number."""
    gains = {key: f"{key} gain" for key in GAINS}
    for table, columns in ((tables["arms"], LOSSES), (tables["gain_by_arm"], gains)):
        for row in to_rows(table):
            for column, word in columns.items():
                if pd.notna(row[column]):
                    cell = (row["protocol"], row["arm"], row["placement"])
                    yield (*cell, word), words.number(row[column])


def batch_table(batches: pd.DataFrame, level: float) -> PageTable:
    """Loss by arm and batch size, and how much it is above that at the greatest size."""
    rows = [
        cell
        | {"n": len(group), "failed": int(group["failed"].sum())}
        | {"loss": group["capped_loss"].mean(), "excess": group["excess"].mean()}
        | {k: v for k, v in describe(group["excess"], level).items() if k in ("low", "high")}
        for cell, group in split(batches, ["arm", "placement", "batch_size"])
    ]
    columns = [
        Column("arm", _name),
        Column("batch size", count("batch_size")),
        Column("n", count()),
        Column("failed", count("failed")),
        Column("loss", number("loss")),
        Column("above the greatest size", number("excess", sign=True)),
        Column("interval", interval("low", "high", sign=True)),
    ]
    keys = [*"arm placement batch_size n failed loss excess low high".split()]
    return tabulate("Validation loss by batch size", pd.DataFrame(rows, columns=keys), columns)


def _sizes(study: Main, name: str) -> dict[str, object]:
    """Sizes and training of a protocol, for the page."""
    protocol = study.every_protocol[name]
    return {"name": name, **protocol.model.model_dump(), **protocol.training.model_dump()}


def section(study: Main, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on the models of one arm each.

    Args:
        study: its configuration.
        tables: runs, chosen, arms, batches, gain_by_arm, published and corpus.
    """
    runs, arms, gains = (tables[name] for name in ("runs", "arms", "gain_by_arm"))
    only_batches = set(tables["batches"]["protocol"]) - set(study.gain.protocols)
    shown = [p for p in dict.fromkeys(arms["protocol"]) if p not in only_batches]
    measured = list(dict.fromkeys(gains["protocol"]))
    own = select(runs, **study.reference._asdict())
    (corpus,) = to_rows(tables["corpus"])
    return Section(
        words={
            **study.model.model_dump(),
            **study.training.model_dump(),
            "baseline": f"{study.baseline.arm}-{study.baseline.placement}",
            "reference": str(study.reference),
            "protocols": [_sizes(study, name) for name in shown],
            "measured": measured,
            "needed": FEWEST,
            "characters": corpus["characters"],
            "train": f"{corpus['train_tokens']:,}",
            "val": f"{corpus['val_tokens']:,}",
            "count": count_models(select(runs, protocol=NANOGPT), BY),
            "others": int((runs["protocol"] != NANOGPT).sum()),
            "models": len(runs),
            "diverged": int(runs["diverged_at"].notna().sum()),
            "failed": int(runs["failed"].sum()),
            "notes": notes(dict.fromkeys(runs["arm"])),
        },
        tables={
            "published": published_table(tables["published"], own["val_loss_window_sd"].mean()),
            **{f"loss_{p}": loss_table(select(arms, protocol=p), f"{LOSS}, {p}") for p in shown},
            "batches": batch_table(tables["batches"], settings.level),
            **{f"gain_{p}": gain_table(select(gains, protocol=p), p) for p in measured},
        },
        numbers=list(_numbers(tables)),
    )
