"""A small configuration, and rows of the tables of norms' backward passes, for tests."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from recipes import recipe, with_changes

from normscope.studies.jacobian.grid import SET_BY_RUNS, Jacobian
from normscope.studies.jacobian.tables import MEASURES, TABLES

CEILING = 4.0  # loss of a uniform predictor
UNIGRAM = 3.3
LOSSES = [name for name in TABLES["losses"].names if name != "val_loss"]
LAYERS = TABLES["layers"].names
GRADIENTS = TABLES["gradients"].names


SMALL = recipe(tied_head=False)
PROTOCOL = {
    "model": SMALL.model.model_dump(exclude=set(SET_BY_RUNS)),
    "training": SMALL.training.model_dump(),
}
GRID = {
    "protocols": {
        "published": PROTOCOL,
        "small_2": PROTOCOL,
    },
    "published": "published",
    "corrected": "small_2",
    "runs": [
        {
            "protocol": "small_2",
            "arms": ["layernorm", "rmsnorm_plain"],
            "attention": ["sigmoid"],
            "feedback": ["fa", "dfa"],
            "norm_backward": ["exact", "projected"],
            "surrogates_in": ["all", "final"],
            "learning_rates": [0.01, 1e-5],
            "seeds": [1, 2],
        },
        {
            "protocol": "published",
            "arms": ["manual_l2"],
            "attention": ["softmax"],
            "feedback": ["backprop"],
            "norm_backward": ["exact"],
            "learning_rates": [0.01],
            "seeds": [7],
        },
    ],
    "windows": 3,
}


def grid(**changes: Any) -> Jacobian:
    """The grid with values set at dotted keys."""
    return Jacobian.model_validate(with_changes(GRID, ".", changes), strict=True)


def cell(**changes: Any) -> dict[str, Any]:
    values = {
        "protocol": "small",
        "arm": "layernorm",
        "attention": "softmax",
        "feedback": "fa",
        "norm_backward": "exact",
        "surrogates_in": "all",
        "radial_share": 1.0,
        "sigma_penalty": 0.0,
        "learning_rate": 0.01,
    }
    return values | changes


def model(seed: int, loss: float | None, **changes: Any) -> dict[str, Any]:
    """A row of losses.csv; no loss means that the model diverged."""
    lost, capped = (3, CEILING) if loss is None else (None, min(loss, CEILING))
    outcome = {"capped_loss": capped, "failed": int(capped > UNIGRAM - 0.05)}
    return cell(**changes) | {"seed": seed, "diverged_at": lost} | outcome


def frame(rows: list[dict[str, Any]], columns: list[str] = LOSSES) -> pd.DataFrame:
    """As scripts read it: text, and numbers that are NaN where there is none."""
    table = pd.DataFrame(rows, columns=columns)
    numbers = dict.fromkeys(("capped_loss", "diverged_at", "cosine", *MEASURES), float)
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


def gradient(seed: int, cosine: float, rule: str, place: str = "all", **changes) -> dict[str, Any]:
    """A row of gradients.csv."""
    row = cell(norm_backward=rule, surrogates_in=place) | {"seed": seed, "signal": "own"}
    del row["radial_share"]
    return row | {"cosine": cosine, "error": 0.1} | changes


def loss_rows(losses: Mapping[str, Sequence[float | None]], **changes: Any) -> list[dict[str, Any]]:
    """Losses of seeds 0, 1, ... by ``norm_backward``, then where, then the share left in."""
    rows = []
    for name, of_seeds in losses.items():
        rule, place, share = [*name.split(), *["all", "1"][len(name.split()) - 1 :]]
        which = {"norm_backward": rule, "surrogates_in": place, "radial_share": float(share)}
        rows += [model(seed, loss, **which, **changes) for seed, loss in enumerate(of_seeds)]
    return rows
