"""Tables of residual gain: measured and published, each as published and corrected. No torch."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import scipy  # its parts load at their first use: figures need none

from normscope.statistics.inference import (
    bootstrap_mean,
    correlation,
    holm,
    mean_test,
    partial_correlation,
    separation,
)
from normscope.statistics.levels import ALPHA
from normscope.statistics.summary import geometric_mean, split
from normscope.studies.pretrained.measures import FIRST_STUDIES, INSIDE, METRICS, MODEL, VALIDATION
from normscope.studies.pretrained.tables import TABLES

OBSERVATION = TABLES["observations"].names
ADDED = ("reads", "base")  # columns of by_model that come after its statistics


def read_measurements(path: Path) -> pd.DataFrame:
    """Read a table of a probe: a predicted token such as ``NA`` remains text."""
    numbers = pd.read_csv(path, nrows=0).columns.drop("top_token", errors="ignore")
    missing: dict = dict.fromkeys(numbers, "")
    text: dict = {"top_token": str}
    return pd.read_csv(path, keep_default_na=False, na_values=missing, dtype=text)


def published_observations(prompts: pd.DataFrame, references: pd.DataFrame) -> pd.DataFrame:
    """The published gain of the last block: one row per experiment, model and prompt."""
    facts = references[references["metric"] == "last_gain"][MODEL]
    table = prompts.merge(facts, on=["experiment", "model"], validate="many_to_one")
    words = [len(text.split()) for text in table["prompt"]]
    return table.assign(words=words, gain=table["last_gain"])[OBSERVATION]


def mark_usual(table: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    """The table with the column ``usual``: whether BOS is as the model's tokenizer has it.

    A tokenizer without BOS, whose ``tokenizer_adds_bos`` is missing, adds none.
    """
    adds = models.loc[models["tokenizer_adds_bos"].eq(True), "model"]
    usual = table["bos"] == np.where(table["model"].isin(adds), "on", "off")
    return table.assign(usual=usual.astype(bool))


def select_published_protocol(gains: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    """Measured rows under the published protocol: last token, BOS as the tokenizer has it.

    Args:
        models: the models table, whose facts are joined to the rows.
    """
    measured = models.dropna(subset="norm")
    measured = measured.assign(experiment="measured", dtype=measured["computed"])
    rows = mark_usual(gains[gains["positions"] == "last"], models)
    facts = measured[[*MODEL, "n_layers", "rho"]]
    return rows[rows["usual"]].merge(facts, on="model", validate="many_to_one")


def measured_observations(gains: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    """The measured gain of the last block, in the form of ``published_observations``."""
    table = select_published_protocol(gains, models)
    return table.assign(prompt=table["text"], gain=table["last_gain"])[OBSERVATION]


def by_model(observations: pd.DataFrame, level: float, resamples: int) -> pd.DataFrame:
    """One row per experiment and model: as published, then corrected.

    As published: mean, t against 1, r of entropy with abs(gain - 1). Corrected: the log-gain with
    its bootstrap interval over prompts, and the raw r of entropy with the gain, given the number of
    words, and without each category in turn. Holm's correction is over the published base models,
    and separately over the measured models.
    """
    rows = []
    for key, group in split(observations, MODEL):
        gains, entropy = group["gain"].to_numpy(dtype=float), list(group["entropy"])
        logs = list(np.log(gains))
        deviation = correlation(entropy, list(np.abs(gains - 1)), level)
        raw = correlation(entropy, list(gains), level)
        e = bootstrap_mean(logs, level, resamples)
        r_words, p_words = partial_correlation(entropy, list(gains), list(group["words"]))
        without = _leave_categories_out(group, level)
        rows.append(
            key
            | {"n": len(group), "mean": gains.mean(), "sd": group["gain"].std()}
            | {"min": gains.min(), "max": gains.max(), **dampening(gains)}
            | {"r_deviation": deviation.r, "p_deviation": deviation.p}
            | {"log_gain": e.mean, "low": e.low, "high": e.high, "p": mean_test(logs)}
            | {"r": raw.r, "r_low": raw.low, "r_high": raw.high, "r_p": raw.p}
            | {"r_given_words": r_words, "p_given_words": p_words}
            | {"r_without_low": without.min(), "r_without_high": without.max()}
            | {"r_without_nonsense": without.get("Nonsense", math.nan)}
            | {"below_one": int((gains < 1).sum())}
        )
    table = pd.DataFrame(rows, columns=[c for c in TABLES["by_model"].names if c not in ADDED])
    for tests in (table["experiment"] == "measured", table["experiment"].isin(FIRST_STUDIES)):
        for p in ("p", "r_p", "p_given_words"):
            table.loc[tests, f"{p}_holm"] = holm(list(table.loc[tests, p]))
    return table.assign(reads=reads(table["log_gain"], table["p_holm"]))


def dampening(gains: np.ndarray) -> dict[str, float | str]:
    """A model's gains over prompts against 1 as published: a one-sided t test, and its verdict."""
    if len(gains) < 2:
        return {"t": math.nan, "p_one_sided": math.nan, "status": "no data"}
    t, p = (float(v) for v in scipy.stats.ttest_1samp(gains, 1.0))
    one_sided = p / 2 if t < 0 else 1 - p / 2
    below = "CONFIRMED" if one_sided < 0.05 else "NOT SIGNIFICANT"
    return {"t": t, "p_one_sided": one_sided, "status": "REJECTED" if gains.mean() >= 1 else below}


def base_models(by_model: pd.DataFrame) -> pd.DataFrame:
    """Every model once, as measured here or else as published; fine-tuned models are left out."""
    untuned = by_model[by_model["base"].isna()]
    measured = untuned[untuned["experiment"] == "measured"]
    published = untuned[untuned["experiment"].isin(FIRST_STUDIES)]
    return pd.concat([measured, published]).drop_duplicates("model", ignore_index=True)


def comparisons(by_model: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The models over which LayerNorm and RMSNorm are compared, by the name of the comparison."""
    untuned = by_model[by_model["base"].isna()]
    first = untuned[untuned["experiment"].isin(FIRST_STUDIES)]
    return {
        "published, its seven models": first[first["model"].isin(VALIDATION)],
        "published, all eight": first,
        "measured": untuned[untuned["experiment"] == "measured"],
        "measured, else published": base_models(by_model),
    }


def add_base(
    by_model: pd.DataFrame, references: pd.DataFrame, models: pd.DataFrame
) -> pd.DataFrame:
    """The table with the base of each fine-tuned model, or "not listed" if it is unknown."""
    tuned = models[models["tuned"].eq(True) | models["base"].notna()]
    tuned = tuned.assign(experiment="measured", base=tuned["base"].fillna("not listed"))
    columns = ["experiment", "model", "base"]
    bases = pd.concat([references.dropna(subset="base")[columns], tuned[columns]])
    return by_model.merge(bases, on=["experiment", "model"], how="left")


def _leave_categories_out(group: pd.DataFrame, level: float) -> pd.Series:
    """Raw r of entropy and gain with one category left out, by its name."""
    rests = {name: group[group["category"] != name] for name in group["category"].unique()}
    r = {
        name: correlation(list(rest["entropy"]), list(rest["gain"]), level).r
        for name, rest in rests.items()
    }
    return pd.Series(r, dtype=float)


def reads(log_gain: pd.Series, p: pd.Series) -> np.ndarray:
    """Where the gains of models lie, by their Holm-corrected p-values."""
    conditions = [p.isna(), p >= ALPHA, log_gain > 0]
    return np.select(conditions, ["–", "no difference from 1 found", "above 1"], "below 1")


def by_norm(
    observations: pd.DataFrame,
    comparisons: Mapping[str, pd.DataFrame],
    level: float,
    resamples: int,
) -> pd.DataFrame:
    """LayerNorm against RMSNorm: one row per comparison and unit, a model or a family.

    ``difference`` is that of mean log-gains, RMSNorm's minus LayerNorm's, over models or over means
    of families. Its interval is over the prompts that all models share, with the models held fixed.
    ``p`` is that of an exact permutation test over units, and ``smallest`` the smallest possible.

    Args:
        comparisons: rows of ``by_model`` that are compared, by the name of the comparison.
    """
    rows = []
    for name, compared in comparisons.items():
        models = compared[compared["norm"].isin(["LayerNorm", "RMSNorm"])]
        families = models.groupby(["family", "norm"], as_index=False)["log_gain"].mean()
        over_prompts = _contrast_by_prompt(observations, models)
        for unit, units in (("model", models), ("family", families)):
            groups = (
                list(units.loc[units["norm"] == n, "log_gain"]) for n in ("LayerNorm", "RMSNorm")
            )
            s = separation(*groups)
            row = {"comparison": name, "unit": unit, "layernorm": s.n_low, "rmsnorm": s.n_high}
            row |= {"difference": s.difference, "p": s.p, "smallest": s.smallest}
            values = over_prompts[unit]
            if values:
                e = bootstrap_mean(values, level, resamples)
                row |= {"low": e.low, "high": e.high, "prompts": e.n}
            rows.append(row)
    return pd.DataFrame(rows, columns=TABLES["by_norm"].names)


def _contrast_by_prompt(observations: pd.DataFrame, models: pd.DataFrame) -> dict[str, list[float]]:
    """RMSNorm's mean log-gain minus LayerNorm's at every prompt that all models share."""
    if models["norm"].nunique() < 2:
        return {"model": [], "family": []}
    chosen = observations.merge(models[["experiment", "model"]], on=["experiment", "model"])
    gains = chosen.pivot_table("gain", index="prompt", columns=["norm", "family", "model"])
    wide = gains.dropna().apply(np.log)
    of_family = wide.T.groupby(level=["norm", "family"]).mean().T
    contrasts = {}
    for unit, table in (("model", wide), ("family", of_family)):
        by = table.T.groupby(level="norm").mean().T
        contrasts[unit] = list(by["RMSNorm"] - by["LayerNorm"]) if len(by) else []
    return contrasts


def sensitivity(
    gains: pd.DataFrame, models: pd.DataFrame, level: float, resamples: int
) -> pd.DataFrame:
    """Every metric at every position, with and without BOS: one row per model and cell.

    The mean log-gain over prompts with its bootstrap interval. A ratio is missing where a prompt
    has only one token (later positions), or a model no final norm.
    """
    rows = []
    for key, group in split(gains, ["model", "bos", "positions"]):
        for metric in METRICS:
            logs = [math.log(v) for v in group[metric].dropna()]
            row = {**key, "metric": metric}
            if logs:
                e = bootstrap_mean(logs, level, resamples)
                row |= {"n": e.n, "log_gain": e.mean, "low": e.low, "high": e.high}
                row |= {"reads": side(e.low, e.high)}
            rows.append(row)
    return mark_usual(pd.DataFrame(rows, columns=TABLES["sensitivity"].names), models)


def side(low: float, high: float) -> str:
    """Where an interval of a log-gain lies."""
    if math.isnan(low):
        return "–"
    return "above 1" if low > 0 else "below 1" if high < 0 else "covers 1"


def by_block(inside: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    """What happens inside every block, with means over the prompts of the model."""
    rows = [
        row | {"n": len(group)} | means_inside(group)
        for row, group in split(inside, ["model", "bos", "depth", "site"])
    ]
    return mark_usual(pd.DataFrame(rows, columns=TABLES["inside"].names), models)


def means_inside(rows: pd.DataFrame) -> dict[str, float]:
    """The mean of every measure of ``INSIDE`` over the rows that have it; NaN if none has."""
    return {
        name: geometric_mean(rows[name]) if mean == "geometric" else float(rows[name].mean())
        for name, mean in INSIDE.items()
    }
