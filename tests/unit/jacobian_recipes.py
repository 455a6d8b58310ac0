"""Rows of the tables of norms' backward passes, for tests."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from normscope.studies.jacobian.grid import Cell
from normscope.studies.jacobian.measures import GRADIENT, LAYER, MEASURES
from normscope.studies.jacobian.tables import SETTING

LOSSES = [*Cell._fields, "seed", "val_loss", "diverged_at"]
NAMES = ["by_layer", "chosen", "costs", "predictors", "predictions"]

UNIGRAM = 3.3


def cell(**changes: Any) -> dict[str, Any]:
    values = {
        "protocol": "small",
        "arm": "layernorm",
        "attention": "softmax",
        "feedback": "fa",
        "norm_backward": "exact",
        "surrogates_in": "all",
        "learning_rate": 0.01,
    }
    return values | changes


def model(seed: int, loss: float | None, **changes: Any) -> dict[str, Any]:
    """A row of losses.csv; no loss means a divergence."""
    lost = None if loss is not None else 3
    return cell(**changes) | {"seed": seed, "val_loss": loss, "diverged_at": lost}


def frame(rows: list[dict[str, Any]], columns: list[str] = LOSSES) -> pd.DataFrame:
    """As scripts read it: text, and numbers that are NaN where there is none."""
    table = pd.DataFrame(rows, columns=columns)
    numbers = {"val_loss": float, "cosine": float} | dict.fromkeys(MEASURES, float)
    return table.astype({k: v for k, v in numbers.items() if k in columns})


def layer(seed: int, name: str, measures: dict[str, float], **changes: Any) -> dict[str, Any]:
    """A row of layers.csv; measures that are not given are NaN."""
    head = {
        "signal": "own",
        "variant": "corrected",
        "layer": name,
        "place": "final" if name == "final_norm" else "block",
        "index": 0,
        "kind": "TokenNorm",
        "d": 8,
        "tokens": 40,
    }
    at = {k: changes.pop(k) for k in list(changes) if k in head}
    return cell(**changes) | {"seed": seed} | head | at | measures


LAYERS = [*Cell._fields, "seed", *LAYER, *MEASURES]
GRADIENTS = [*SETTING, "learning_rate", "seed", *GRADIENT]


def gradient(seed: int, cosine: float, rule: str, place: str = "all", **changes) -> dict[str, Any]:
    """A row of gradients.csv."""
    row = cell(norm_backward=rule, surrogates_in=place) | {"seed": seed, "signal": "own"}
    return row | {"cosine": cosine, "error": 0.1} | changes


def picked(losses: Mapping[str, Sequence[float | None]], **changes: Any) -> list[dict[str, Any]]:
    """Losses of seeds 0, 1, ... by ``norm_backward``, or by that and ``surrogates_in``."""
    return [
        model(
            seed,
            loss,
            norm_backward=rule.split()[0],
            surrogates_in=(rule.split()[1:] or ["all"])[0],
            **changes,
        )
        for rule, of_seeds in losses.items()
        for seed, loss in enumerate(of_seeds)
    ]


BLOCK = {
    "r_mean": 0.1,
    "r_radial": 0.2,
    "cos_center_scale": 0.9,
    "cos_projected": 1.0,
    "cos_straight_through": 0.8,
    "error_center_scale": 0.3,
    "error_projected": 0.4,
    "error_straight_through": 0.5,
}
FINAL = {name: value / 2 for name, value in BLOCK.items()}
