"""The published analysis of residual gains, computed as its notebooks do. No torch.

Source: D'Elia 2026 (doi 10.5281/zenodo.18165365), "GPT-2 LayerNorm Validation" and "Clean Residual
Gain Validation". Words and thresholds are those of the source.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import scipy  # its parts load at their first use: figures need none

CROWDED = 0.2  # rho from which H25 predicts a gain below 1
CONSISTENT = 0.15  # difference of two gains below which they count as consistent


def dampening(gains: Sequence[float]) -> dict[str, float | str]:
    """A model's gains over prompts against 1: a one-sided t test, and the word for it."""
    if len(gains) < 2:
        return {"t": math.nan, "p_one_sided": math.nan, "status": "no data"}
    t, p = (float(v) for v in scipy.stats.ttest_1samp(gains, 1.0))
    one_sided = p / 2 if t < 0 else 1 - p / 2
    return {"t": t, "p_one_sided": one_sided, "status": status(float(np.mean(gains)), one_sided)}


def status(mean: float, p_one_sided: float) -> str:
    """The word for a model's gain."""
    if mean >= 1:
        return "REJECTED"
    return "CONFIRMED" if p_one_sided < 0.05 else "NOT SIGNIFICANT"


def t_of_summary(mean: float, sd: float, n: int) -> float:
    """The t statistic against 1 from mean, standard deviation (over n - 1) and n."""
    return (mean - 1) / (sd / math.sqrt(n))


def overall(statuses: Sequence[str]) -> str:
    """What all models together show of "LayerNorm dampens"."""
    if not statuses:
        return "no data"
    if all(s == "CONFIRMED" for s in statuses):
        return "STRONGLY CONFIRMED"
    is_below = all(s != "REJECTED" for s in statuses)
    return "CONFIRMED (directionally)" if is_below else "INCONCLUSIVE"


def hypothesis_status(statuses: Sequence[str]) -> str:
    """The same as the notebook's file of results has it."""
    if not statuses:
        return "no data"
    return "CONFIRMED" if all(s != "REJECTED" for s in statuses) else "REJECTED"


def inversion(correlations: Sequence[float]) -> str:
    """What correlations of entropy with abs(gain - 1) show of "LayerNorm inverts Bentov's law"."""
    negative = sum(r < 0 for r in correlations)
    if not correlations:
        return "no data"
    if negative == len(correlations):
        return "CONFIRMED"
    return "PARTIAL" if negative else "REJECTED"


def dichotomy(layernorm: Mapping[str, float], rmsnorm: Mapping[str, float]) -> str:
    """Whether every LayerNorm gain is below 1 and every RMSNorm gain above."""
    if not layernorm or not rmsnorm:
        return "no data"
    is_apart = all(g < 1 for g in layernorm.values()) and all(g > 1 for g in rmsnorm.values())
    return "STRONGLY CONFIRMED" if is_apart else "mixed"


def h25_verdict(correct: int, n: int) -> str:
    """The word for its accuracy; none without a model."""
    if n == 0:
        return "no data"
    if correct == n:
        return "VALIDATED"
    return "PARTIALLY_VALIDATED" if correct >= n / 2 else "FALSIFIED"


def published_ratios(references: pd.DataFrame) -> pd.DataFrame:
    """Ratios of norms of the models in the notebook on the final norm: one row per model.

    Its two ratios, and the gain of the last block, which two other notebooks measure with hooks.
    """
    notebook = references[references["experiment"] == "final_norm"]
    hooked = references[references["experiment"].isin(["benchmark", "gptj"])]
    table = pd.concat([notebook, hooked[hooked["metric"] == "last_gain"]])
    table = table[table["model"].isin(notebook["model"].dropna())]
    return table.pivot_table("value", index="model", columns="metric", sort=False)


def measured_ratios(sensitivity: pd.DataFrame) -> pd.DataFrame:
    """The same ratios of measured models: geometric means, BOS as the tokenizer has it."""
    table = sensitivity[sensitivity["usual"] & (sensitivity["positions"] == "last")]
    table = table.assign(value=np.exp(table["log_gain"]))
    return table.pivot_table("value", index="model", columns="metric", sort=False)
