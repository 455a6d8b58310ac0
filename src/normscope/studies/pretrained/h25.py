"""H25, "a head density rho of 0.2 or more dampens": how often it is right. No torch.

rho is heads over head dimension. The published metric is that of the penultimate block.
"""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import scipy  # its parts load at their first use: figures need none

from normscope.statistics.inference import (
    bootstrap_mean,
    correlation,
    estimate_published,
    mean_test,
    partial_correlation,
    proportion,
)
from normscope.statistics.summary import split
from normscope.studies.pretrained.measures import CROWDED
from normscope.studies.pretrained.tables import TABLES

METRICS = ("gain_hidden_states", "last_gain")


def t_of_summary(mean: float, sd: float, n: int) -> float:
    """The t statistic against 1 from mean, standard deviation (over n - 1) and n."""
    return (mean - 1) / (sd / math.sqrt(n))


def published_models(references: pd.DataFrame, level: float) -> pd.DataFrame:
    """One row per experiment, model and metric with a published mean gain and rho."""
    rows = []
    for r in references[references["metric"].isin(METRICS)].to_dict("records"):
        if math.isnan(r["n_heads"]) or math.isnan(r["sd"]):
            continue
        e = estimate_published(r["value"], r["sd"], int(r["n"]), int(r["ddof"]), level)
        row = {k: r[k] for k in ("experiment", "model", "family", "norm", "metric", "n_layers")}
        row |= {"rho": r["n_heads"] / r["head_dim"], "n": e.n}
        rows.append(row | {"gain": e.mean, "low": e.low, "high": e.high, "p": _p(r)})
    return _with_predictions(rows)


def measured_models(gains: pd.DataFrame, level: float, resamples: int) -> pd.DataFrame:
    """The same of measured models: geometric means, intervals over resampled prompts."""
    rows = []
    keys = ["experiment", "model", "family", "norm", "n_layers", "rho"]
    for key, prompts in split(gains, keys):
        for metric in METRICS:
            logs = [math.log(v) for v in prompts[metric].dropna()]
            if logs:
                e = bootstrap_mean(logs, level, resamples)
                gain, low, high = map(math.exp, (e.mean, e.low, e.high))
                row = key | {"metric": metric, "n": e.n, "p": mean_test(logs)}
                rows.append(row | {"gain": gain, "low": low, "high": high})
    return _with_predictions(rows)


def _p(reference: Mapping) -> float:
    """Two-sided p of a published mean gain against 1: Student's t over prompts."""
    n, ddof = int(reference["n"]), int(reference["ddof"])
    if n < 2:
        return math.nan
    sd = float(reference["sd"]) * math.sqrt((n - ddof) / (n - 1))
    return 2 * float(scipy.stats.t.sf(abs(t_of_summary(reference["value"], sd, n)), n - 1))


def _with_predictions(rows: list[dict]) -> pd.DataFrame:
    """With the prediction of H25, and what the gain and its interval say about it."""
    table = pd.DataFrame(rows, columns=TABLES["h25_models"].names)
    below, above = table["high"] < 1, table["low"] > 1
    table["predicted"] = np.where(table["rho"] >= CROWDED, "below 1", "above 1")
    table["as_published"] = np.where(table["gain"] < 1, "below 1", "above 1")
    table["correct"] = table["predicted"] == table["as_published"]
    table["reading"] = np.select([below, above], ["below 1", "above 1"], "neither")
    return table


def h25_verdict(correct: int, n: int) -> str:
    """The published verdict on H25 by its accuracy; ``no data`` without a model."""
    if n == 0:
        return "no data"
    if correct == n:
        return "VALIDATED"
    return "PARTIALLY_VALIDATED" if correct >= n / 2 else "FALSIFIED"


def accuracy(models: pd.DataFrame, level: float) -> pd.DataFrame:
    """One row per experiment and metric: how often H25 is right, and the correlations.

    As published every model counts as one or the other. Corrected: of those whose interval does not
    cover 1 (``decided``). ``r`` is Pearson's of rho and gain, ``r_given_depth`` with the number of
    layers partialled out, both over models, which share families.
    """
    rows = []
    for key, group in split(models, ["experiment", "metric"]):
        right, n = int(group["correct"].sum()), len(group)
        decided = group[group["reading"] != "neither"]
        agreeing = int((decided["reading"] == decided["predicted"]).sum())
        published = proportion(right, n, level)
        corrected = proportion(agreeing, len(decided), level)
        rho, gain, depth = (list(group[name]) for name in ("rho", "gain", "n_layers"))
        r = correlation(rho, gain, level)
        partial, p = partial_correlation(rho, gain, depth)
        rows.append(
            {**key, "n": n, "right": right}
            | {"families": group["family"].nunique(), "verdict": h25_verdict(right, n)}
            | {"share": published.mean, "low": published.low, "high": published.high}
            | {"decided": len(decided), "decided_right": agreeing}
            | {"decided_low": corrected.low, "decided_high": corrected.high}
            | {"r": r.r, "r_p": r.p, "r_given_depth": partial, "p_given_depth": p}
            | {"r_depth": correlation(rho, depth, level).r}
        )
    return pd.DataFrame(rows, columns=TABLES["h25"].names)
