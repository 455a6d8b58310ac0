"""Signals by depth and trainings in words and tables, made from the study's tables alone."""

from collections.abc import Iterator, Mapping

import pandas as pd

from normscope.formats import INTEGER, SCIENTIFIC, decimals
from normscope.nn.arms import ARMS
from normscope.pages.section import Section
from normscope.pages.table import (
    CELLS,
    Number,
    PageTable,
    Row,
    at,
    count,
    cross,
    estimate,
    field,
    fields_of,
    tabulate,
    text,
)
from normscope.statistics.levels import FEWEST
from normscope.statistics.outcome import STUCK
from normscope.studies.depth.grid import Depth
from normscope.studies.depth.recipe import TOKENS
from normscope.studies.depth.tables import HEADINGS, TABLES
from normscope.studies.depth.tabulate import SHAPE
from normscope.studies.study import Settings

FORMATS = {"smallest": decimals()}  # what rounds to 0 is a rounding error of 0
NETWORK = [
    text("norm", "arm", lambda arm: ARMS[arm].label),
    *fields_of(TABLES["by_shape"], "placement", "residual", "init", "depth"),
]


def rate_table(by_shape: pd.DataFrame) -> PageTable:
    """One row per network and state: what one block does, and what all of them do."""
    shown = by_shape[by_shape["measure"].isin(list(HEADINGS))]
    fields = [
        *NETWORK,
        text("state"),
        field("n", _models),
        *(
            at(key, estimate(title, form=FORMATS.get(key, SCIENTIFIC)))
            for key, title in HEADINGS.items()
        ),
    ]
    rows = cross(shown, [*SHAPE, "state"], "measure")
    return tabulate("Signal and gradient, block by block", rows, fields)


def _models(row: Row) -> str:
    """The number of models, or its range if measures differ."""
    counts = sorted({record["n"] for record in row[CELLS].values()})
    return "–".join(dict.fromkeys([f"{counts[0]}", f"{counts[-1]}"]))


def training_table(trainability: pd.DataFrame) -> PageTable:
    """One row per network and schedule: validation loss, also relative to character frequencies."""
    fields = [
        *NETWORK,
        *fields_of(TABLES["trainability"], "learning_rate", "warmup_steps", "steps"),
        count("n", diverged="diverged"),
        *fields_of(TABLES["trainability"], "failed", "mean", "[mean]"),
        field("below frequencies", lambda row: row["unigram"] - row["mean"], decimals(sign=True)),
    ]
    return tabulate("What a short training reaches", trainability, fields)


def _schedules(study: Depth) -> Iterator[str]:
    """The schedules of the trained models that are probed, with the starts of their networks."""
    for schedule in study.kept:
        cells = (c for c in study.cells().values() if c.schedule == schedule)
        yield f"{schedule} ({' and '.join(dict.fromkeys(c.init for c in cells))})"


def section(study: Depth, tables: Mapping[str, pd.DataFrame], settings: Settings) -> Section:
    """The part of the paper on depth."""
    t, s = study.training, study.sizes
    return Section(
        words={
            "sizes": f"{s.n_head} heads, width {s.n_embd}, context {s.block_size}",
            "training": f"steps of {t.batch_size} windows, {t.precision}",
            "tokens": Number(t.eval_tokens, INTEGER) if t.eval_tokens else "all",
            "kept": ", ".join(_schedules(study)),
            "windows": study.windows,
            "tokens_of_spectra": TOKENS,
            "stuck": STUCK,
            "seeds": FEWEST,
        },
        tables={
            "rates": rate_table(tables["by_shape"]),
            "trainability": training_table(tables["trainability"]),
        },
    )
