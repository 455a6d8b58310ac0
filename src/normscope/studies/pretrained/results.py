"""residual_gain.json: what the published notebook saves, under its keys. No torch.

Source: D'Elia 2026, "Clean Residual Gain - NO FINAL LAYERNORM". Means over prompts are arithmetic,
and standard deviations are over n, as there.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from normscope.studies.pretrained.h25 import h25_verdict
from normscope.studies.pretrained.measures import CROWDED
from normscope.studies.pretrained.statistics import mark_usual, select_published_protocol

RATIOS = {"with_ln": "gain_with_final_norm", "no_ln": "gain_hidden_states"}
DIGITS = 6  # of a number


def _result(model: Mapping[Any, Any], gains: pd.DataFrame, norms: pd.DataFrame) -> dict[str, Any]:
    """What the notebook saves of one model, from its rows under the published protocol."""
    by_layer = norms.dropna(subset="log_gain").groupby("depth")
    means = {name: gains[column].mean() for name, column in RATIOS.items()}
    return {
        **{f"gain_{name}_mean": _number(mean) for name, mean in means.items()},
        **{f"gain_{n}_std": _number(gains[column].std(ddof=0)) for n, column in RATIOS.items()},
        **{f"is_dampening_{name}": bool(mean < 1) for name, mean in means.items()},
        "all_layer_gains": [_number(np.exp(v["log_gain"]).mean()) for _, v in by_layer],
        "n_hidden_states": int(model["n_layers"]) + 1,
        "model": model["model"],
        "path": model["source"],
        "n_heads": int(model["n_heads"]),
        "d_model": int(model["n_embd"]),
        "d_head": int(model["head_dim"]),
        "n_layers": int(model["n_layers"]),
        "rho": _number(model["rho"]),
    }


def _number(value: float) -> float | None:
    """As JSON stores it: None for a missing number, such as that of a norm which is not there."""
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None


def document(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """The content of residual_gain.json.

    Args:
        tables: models, gains and norms of the study.
    """
    models = tables["models"].dropna(subset="norm")
    gains = select_published_protocol(tables["gains"], tables["models"])
    norms = mark_usual(tables["norms"], tables["models"])
    norms = norms[norms["usual"] & (norms["positions"] == "last")]
    results = {
        row["model"]: _result(
            row, gains[gains["model"] == row["model"]], norms[norms["model"] == row["model"]]
        )
        for row in models.to_dict("records")
    }
    right = sum((one["rho"] >= CROWDED) == one["is_dampening_no_ln"] for one in results.values())
    return {
        "experiment": "Clean Residual Gain - NO FINAL LAYERNORM",
        "prompts": list(dict.fromkeys(gains["text"])),
        "precision": "float32",
        "methodology": {
            "wrong_metric": "hidden_states[-1] / hidden_states[-2] (includes final LN)",
            "correct_metric": "hidden_states[-2] / hidden_states[-3] (true last layer gain)",
        },
        "h25_verdict": h25_verdict(right, len(results)),
        "h25_accuracy": _number(100 * right / max(len(results), 1)),
        "results": results,
    }
