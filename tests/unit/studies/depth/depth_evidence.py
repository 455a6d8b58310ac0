"""Small tables of the depth study: networks and losses that a test plants."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from normscope.statistics.outcome import with_outcome
from normscope.studies.depth.tables import TABLES
from normscope.studies.depth.tabulate import advantages, by_layer, over_rates, warm_ups

UNIGRAM, CHARACTERS = 3.3, 65
SEEDS = 6
SHAPE = {"arm": "layernorm", "placement": "pre", "residual": True, "init": "gpt2", "depth": 12}
SCHEDULE = {"learning_rate": 0.001, "warmup_steps": 40, "steps": 600, "unigram": UNIGRAM}
Row = dict[str, Any]


def near(value: float, spread: float = 0.01, n: int = SEEDS) -> list[float]:
    """Values around one, in proportion."""
    return [value * (1 + spread * (i - (n - 1) / 2)) for i in range(n)]


def rates_of(measure: str, values: Sequence[float], **changes: Any) -> list[Row]:
    """Rows of rates.csv: a measure of seeds 0, 1, ... of one network."""
    model = SHAPE | {"state": "start"} | changes
    return [model | {"seed": seed, measure: value} for seed, value in enumerate(values)]


def frame_of_rates(rows: Sequence[Row]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=TABLES["rates"].names)


def losses(values: Sequence[float | None], **changes: Any) -> list[Row]:
    """Rows of losses.csv of seeds 0, 1, ...; None is a divergence."""
    return [
        SHAPE
        | SCHEDULE
        | {"seed": seed, "val_loss": value, "diverged_at": 9 if value is None else None}
        | changes
        for seed, value in enumerate(values)
    ]


def frame_of_losses(*parts: Sequence[Row]) -> pd.DataFrame:
    table = pd.DataFrame(
        [row for part in parts for row in part], columns=TABLES["losses"].names
    ).astype({"val_loss": float, "diverged_at": "Int64"})
    return with_outcome(table, CHARACTERS, UNIGRAM)


def tables(rates: Sequence[Row] = (), *of_losses: Sequence[Row]) -> dict[str, pd.DataFrame]:
    """The depth study's tables, by ``study.table``."""
    models, losses = frame_of_rates(rates), frame_of_losses(*of_losses)
    return {
        "depth.rates": models,
        "depth.layers": by_layer(models),
        "depth.losses": losses,
        "depth.over_rates": over_rates(losses),
        "depth.advantages": advantages(losses),
        "depth.warm_ups": warm_ups(losses),
    }
