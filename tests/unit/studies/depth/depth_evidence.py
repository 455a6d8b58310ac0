"""Tables of models planted with values, from which the tutorial's statements read a verdict."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from normscope.statistics.outcome import with_outcome
from normscope.studies.depth.measures import RATES
from normscope.studies.depth.tabulate import MODEL, SCHEDULE, SHAPE, by_layer, sensitivity, warm_ups

UNIGRAM, CHARACTERS = 3.3, 65
SEEDS = 6
LOSSES = [*SHAPE, *SCHEDULE, "seed", "val_loss", "diverged_at", "unigram"]
Row = dict[str, Any]


def shape(**changes: Any) -> Row:
    default = {"arm": "layernorm", "placement": "pre", "residual": True, "init": "gpt2"}
    return default | {"depth": 12} | {k: v for k, v in changes.items() if k in SHAPE}


def rate(**changes: Any) -> Row:
    """A row of rates.csv."""
    return shape(**changes) | {"state": "start", "seed": 1} | changes


def rates_of(measure: str, values: Sequence[float], **changes: Any) -> list[Row]:
    """A measure of seeds 0, 1, ... of one network."""
    return [rate(seed=seed, **{measure: v}, **changes) for seed, v in enumerate(values)]


def frame_of_rates(rows: Sequence[Row]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=[*MODEL, *RATES])


def losses(values: Sequence[float | None], **changes: Any) -> list[Row]:
    """Rows of losses.csv of seeds 0, 1, ...; None is a divergence."""
    schedule = {"learning_rate": 0.001, "warmup_steps": 40, "steps": 600, "unigram": UNIGRAM}
    return [
        shape(**changes)
        | schedule
        | {"seed": seed, "val_loss": v, "diverged_at": 9 if v is None else None}
        | changes
        for seed, v in enumerate(values)
    ]


def frame_of_losses(*parts: Sequence[Row]) -> pd.DataFrame:
    table = pd.DataFrame([row for part in parts for row in part], columns=LOSSES)
    table = table.astype({"val_loss": float, "diverged_at": "Int64"})
    return with_outcome(table, CHARACTERS, UNIGRAM)


def tables(rates: Sequence[Row] = (), *of_losses: Sequence[Row]) -> dict[str, pd.DataFrame]:
    """The depth study's tables, by ``study.table``."""
    models, losses = frame_of_rates(rates), frame_of_losses(*of_losses)
    return {
        "depth.rates": models,
        "depth.layers": by_layer(models),
        "depth.losses": losses,
        "depth.sensitivity": sensitivity(losses),
        "depth.warm_ups": warm_ups(losses),
    }


def near(value: float, n: int = SEEDS, spread: float = 0.01) -> list[float]:
    """Values around one, in proportion."""
    return [value * (1 + spread * (i - (n - 1) / 2)) for i in range(n)]
