"""The tables of the literature study: models at chosen rates, and what statements compare."""

import math

import numpy as np
import pandas as pd

from normscope.io.tables import collect
from normscope.statistics.summary import describe, split
from normscope.statistics.tuning import chosen, commonest_setting
from normscope.studies.literature.recipe import STARTS, LiteratureTables
from normscope.studies.literature.tables import GROWTH, MEASURES, TABLES
from normscope.studies.outcome import trained_models
from normscope.studies.stage import TableInputs

CELL = TABLES["cells"].keys
MODEL = TABLES["runs"].keys
LATE = 100  # the step from which late growth is measured
DETACHED, EXACT = "detached", "small"  # protocols that differ in the backward pass of the norms


def tabulate(recipe: LiteratureTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name."""
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    curves = collect(inputs.models, "curves.csv", keys)
    runs = all_runs(recipe, inputs, curves)
    picked = chosen(runs, CELL, by="capped_loss")
    blocks = collect(inputs.probes, "blocks.csv", keys)
    norms = collect(inputs.probes, "norms.csv", keys)
    starts: dict[str, dict[str, str]] = {STARTS: {}}
    networks = collect(inputs.probes, "networks.csv", starts)
    return {
        "runs": runs,
        "chosen": picked,
        "differences": differences(picked, recipe.baseline_arm, recipe.baseline_placement),
        "cells": means(picked, recipe.level),
        "sweeps": sweeps(runs),
        "blocks": blocks.merge(picked[MODEL], on=MODEL)[TABLES["blocks"].names],
        "norms": norms.merge(picked[MODEL], on=MODEL)[TABLES["norms"].names],
        "scales": scales(curves).merge(picked[MODEL], on=MODEL),
        "networks": networks,
        "slopes": slopes(networks),
        "towers": collect(inputs.probes, "towers.csv", starts),
    }


def all_runs(recipe: LiteratureTables, inputs: TableInputs, curves: pd.DataFrame) -> pd.DataFrame:
    """One row per model: its outcome, and what was measured in it.

    Args:
        recipe: What the tables are made from.
        inputs: Where the files of the jobs are.
        curves: One row per recorded step of a model.
    """
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    runs = trained_models(recipe, inputs)
    measured = collect(inputs.probes, "models.csv", keys)
    measured = measured.reindex(columns=[*MODEL, *(column.name for column in MEASURES)])
    runs = runs.merge(growth(curves), on=MODEL, how="left")
    # the last recorded step of a model that diverged is not its end
    runs.loc[runs["diverged_at"].notna(), [column.name for column in GROWTH]] = math.nan
    return runs.merge(measured, on=MODEL, how="left")[TABLES["runs"].names]


def scales(curves: pd.DataFrame) -> pd.DataFrame:
    """The recorded steps of models whose scales were recorded, possibly none.

    Args:
        curves: One row per recorded step of a model.
    """
    # curves have no such columns if no training records scales
    return curves.reindex(columns=TABLES["scales"].names).dropna(subset=["sigma"])


def growth(curves: pd.DataFrame) -> pd.DataFrame:
    """One row per model: the columns ``GROWTH``, missing where scales were not recorded.

    Args:
        curves: One row per recorded step of a model.
    """
    rows = []
    for model, curve in split(scales(curves), MODEL):
        late = curve[curve["step"] >= LATE]
        rows.append(
            model
            | {
                "sigma_growth": log_ratio(curve["sigma"]),
                "late_sigma_growth": log_ratio(late["sigma"]),
                "logit_scale": math.log(curve["logit_sd"].iloc[-1]),
            }
        )
    return pd.DataFrame(rows, columns=[*MODEL, *(column.name for column in GROWTH)])


def log_ratio(values: pd.Series) -> float:
    """The logarithm of the last value over the first; NaN of fewer than two."""
    return float(np.log(values.iloc[-1] / values.iloc[0])) if len(values) > 1 else math.nan


def differences(picked: pd.DataFrame, baseline_arm: str, baseline_placement: str) -> pd.DataFrame:
    """One row per model: its loss over those of the baseline's arm, placement and both.

    Args:
        picked: The models at their chosen learning rates.
        baseline_arm: The arm of the baseline.
        baseline_placement: Its placement.
    """
    at = ["protocol", "seed", "arm", "placement"]
    by = picked.set_index(at)[["capped_loss", "failed"]]
    changes = {
        "itself": {},
        "arm": {"arm": baseline_arm},
        "placement": {"placement": baseline_placement},
        "both": {"arm": baseline_arm, "placement": baseline_placement},
    }
    others = {
        name: by.reindex(pd.MultiIndex.from_frame(picked.assign(**change)[at])).reset_index()
        for name, change in changes.items()
    }
    loss = pd.DataFrame({name: rows["capped_loss"] for name, rows in others.items()})
    failed = pd.DataFrame({name: rows["failed"] for name, rows in others.items()})
    of_arm, of_placement = loss["itself"] - loss["arm"], loss["itself"] - loss["placement"]
    return (
        picked[MODEL]
        .reset_index(drop=True)
        .assign(
            failed=failed.max(axis=1).astype(int),
            above_arm=of_arm,
            above_placement=of_placement,
            above_both=of_placement - (loss["arm"] - loss["both"]),
            derivatives_lead=_derivatives_lead(picked),
        )
    )


def _derivatives_lead(picked: pd.DataFrame) -> list[float]:
    """What a norm's derivatives improve, less what its forward pass does, of each detached model.

    A norm whose backward pass leaves out the derivatives of mean and variance normalizes forward
    alone. The derivatives improve its loss to that of the norm, and forward normalization improved
    the loss without a norm to its own.
    """
    losses = picked.set_index(["protocol", "arm", "placement", "seed"])["capped_loss"].to_dict()
    nan = math.nan
    return [
        2 * row["capped_loss"]
        - losses.get((EXACT, row["arm"], row["placement"], row["seed"]), nan)
        - losses.get((EXACT, "none", "none", row["seed"]), nan)
        if row["protocol"] == DETACHED
        else nan
        for row in picked.to_dict("records")
    ]


def means(picked: pd.DataFrame, level: float) -> pd.DataFrame:
    """One row per cell: mean capped loss, and how many models failed."""
    rows = [
        cell
        | commonest_setting(group)
        | describe(group["capped_loss"], level)
        | {"failed": int(group["failed"].sum())}
        for cell, group in split(picked, CELL)
    ]
    return pd.DataFrame(rows, columns=TABLES["cells"].names)


def sweeps(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per cell and seed that was trained at several rates: its sensitivity to the rate.

    The sensitivity is the mean excess of the capped loss over the loss at the best rate (Wortsman
    et al. 2023, arXiv:2309.14322, section 2.2). The best rate is that of the pilot models, so that
    the smallest of several noisy losses is not chosen; without pilot models there is none.
    """
    by = [*CELL, "seed"]
    tuned = runs.dropna(subset=["pilot_loss"])
    best = tuned.loc[tuned.groupby(CELL)["pilot_loss"].idxmin(), [*CELL, "learning_rate"]]
    at_best = runs.merge(best, on=[*CELL, "learning_rate"])[[*by, "capped_loss"]]
    groups = runs.groupby(by, sort=False)
    table = groups.agg(
        rates=("learning_rate", "nunique"),
        failures=("failed", "sum"),
        mean=("capped_loss", "mean"),
    ).reset_index()
    table = table[table["rates"] > 1].merge(at_best, on=by)
    return table.assign(excess=table["mean"] - table["capped_loss"])[TABLES["sweeps"].names]


def slopes(networks: pd.DataFrame) -> pd.DataFrame:
    """One row per arm, placement and seed: slopes over the depth, both on logarithms."""
    table, rows = TABLES["slopes"], []
    for key, group in split(networks, table.keys):
        depth = np.log(group["depth"])
        rows.append(
            key
            | {
                slope: np.polyfit(depth, np.log(group[measure]), 1)[0]
                for slope, measure in (
                    ("change_slope", "output_change"),
                    ("gradient_slope", "last_gradient"),
                )
            }
        )
    return pd.DataFrame(rows, columns=table.names)
