"""Signals by depth and trainings in words and tables, made from the study's tables alone."""

from collections.abc import Iterator, Mapping

import pandas as pd

from normscope import words
from normscope.paper.section import Named, Section
from normscope.paper.table import (
    CELLS,
    Column,
    PageTable,
    Row,
    at,
    count,
    crossed,
    estimate,
    interval,
    label,
    number,
    short,
    tabulate,
    text,
    to_rows,
    yes_no,
)
from normscope.statistics.estimate import FEWEST
from normscope.statistics.outcome import STUCK
from normscope.studies.depth.grid import Depth
from normscope.studies.depth.measures import TOKENS
from normscope.studies.depth.recipe import Shape
from normscope.studies.depth.tabulate import SHAPE
from normscope.studies.study import Settings

RATES = {  # of by_shape.csv, as readers call them
    "gradient_rate": "gradient per block",
    "gradient_kept": "gradient, second to last",
    "stream_rate": "stream per block",
    "stream_growth": "stream, last to first",
    "smallest": "least singular value",
    "largest": "largest",
    "from_identity": "farthest from 1, over norm of J",
    "lost": "lost a token",
}
NETWORK = [
    Column("norm", label()),
    Column("placement", text("placement")),
    Column("residual", yes_no("residual")),
    Column("start", text("init")),
    Column("blocks", count("depth")),
]


def rate_table(by_shape: pd.DataFrame) -> PageTable:
    """A row per network and state: what one block does, and what all of them do."""
    shown = by_shape[by_shape["measure"].isin(list(RATES))]
    form = estimate("mean", "low", "high", words.significant_or_tiny)
    columns = [
        *NETWORK,
        Column("state", text("state")),
        Column("n", _models),
        *(Column(title, at(key, form)) for key, title in RATES.items()),
    ]
    rows = crossed(shown, [*SHAPE, "state"], "measure")
    return tabulate("Signal and gradient, block by block", rows, columns)


def _models(row: Row) -> str:
    """How many models; from the fewest to the most, where measures differ."""
    counts = sorted({record["n"] for record in row[CELLS].values()})
    return "–".join(dict.fromkeys([f"{counts[0]}", f"{counts[-1]}"]))


def training_table(trainability: pd.DataFrame) -> PageTable:
    """A row per network and schedule: validation loss, beside that of character frequencies."""
    columns = [
        *NETWORK,
        Column("learning rate", short("learning_rate")),
        Column("warm-up", count("warmup_steps")),
        Column("steps", count("steps")),
        Column("n", count("n", "diverged")),
        Column("failed", count("failed")),
        Column("loss", number("mean")),
        Column("interval", interval("low", "high")),
        Column(
            "below frequencies", lambda row: words.number(row["unigram"] - row["mean"], sign=True)
        ),
    ]
    return tabulate("What a short training reaches", trainability, columns)


def _numbers(by_shape: pd.DataFrame) -> Iterator[Named]:
    for row in to_rows(by_shape):
        shape = Shape._make(row[key] for key in SHAPE)
        yield (shape, row["state"], row["measure"]), words.significant_or_tiny(row["mean"])


def section(study: Depth, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on depth.

    Args:
        study: its configuration.
        tables: by_shape and trainability.
    """
    t, s = study.training, study.sizes
    kept = study.kept
    return Section(
        words={
            "sizes": f"{s.n_head} heads, width {s.n_embd}, context {s.block_size}",
            "training": f"steps of {t.batch_size} windows, {t.precision}",
            "tokens": f"{t.eval_tokens:,}" if t.eval_tokens else "all",
            "kept": f"learning rate {kept.learning_rate:g}, {kept.warmup_steps} steps of warm-up",
            "windows": study.windows,
            "tokens_of_spectra": TOKENS,
            "stuck": STUCK,
            "seeds": FEWEST,
        },
        tables={
            "rates": rate_table(tables["by_shape"]),
            "trainability": training_table(tables["trainability"]),
        },
        numbers=list(_numbers(tables["by_shape"])),
    )
