"""From the runs of the recall test to its cells and to the effects of the norms' factors."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from normscope.io.tables import collect
from normscope.nn.arms import ARMS
from normscope.statistics.factorial import effects
from normscope.statistics.summary import select, split, summarize
from normscope.statistics.tuning import choose, commonest_setting
from normscope.studies.outcome import with_pilot
from normscope.studies.recall.recipe import Cell, RecallTables
from normscope.studies.recall.tables import LEVELS, MEASURES, TABLES
from normscope.studies.stage import TableInputs

KEYS = [*Cell._fields]

# what is analysed by factor; ln where effects multiply
RESPONSES = {
    "loss": "ln loss",
    "calibrated_loss": "ln calibrated loss",
    "accuracy": "accuracy",
    "effective_rank_query": "effective rank",
    "edge": "ln share of Adam's limit",
}


def tabulate(recipe: RecallTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name."""
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    probes = {name: {} for name in recipe.probes}
    slices = collect(inputs.probes, "slices.csv", probes)
    runs = collect(inputs.probes, "metrics.csv", probes).astype({"diverged_at": "Int64"})
    runs = runs.merge(rises(slices), on=[*KEYS, "seed"], how="left")
    runs = with_pilot(runs, recipe.jobs, recipe.pilot)
    with_levels = with_factors(runs)
    shown = select(with_levels, task=recipe.task, learning_rate=recipe.learning_rate)
    return {
        "runs": with_levels,
        "chosen": choose(with_levels, ["task", "arm"], by="loss"),
        "cells": by_cell(runs, recipe.level),
        "best": best_rates(runs),
        "curves": collect(inputs.models, "curves.csv", keys)[TABLES["curves"].names],
        "slices": slices,
        "spectra": collect(inputs.probes, "spectra.csv", probes),
        "factors": factor_effects(shown, recipe.level),
    }


def rises(slices: pd.DataFrame) -> pd.DataFrame:
    """Column ``rise`` of every run: by how much its loss grows along the filter-normalized slices.

    It is the mean loss at both ends minus that at 0, over the directions.
    """
    keys = [*KEYS, "seed"]
    along = select(slices, kind="filter")
    distance = along["alpha"].astype(float).abs()
    ends, middle = (
        along[distance == at].groupby(keys)["loss"].mean() for at in (distance.max(), 0.0)
    )
    return (ends - middle).astype(float).rename("rise").reset_index()


def by_cell(runs: pd.DataFrame, level: float) -> pd.DataFrame:
    """One row per cell and measure: n models, mean and interval, and how many models diverged."""
    lost = runs["diverged_at"].notna().groupby([runs[key] for key in KEYS], sort=False).sum()
    table = summarize(runs, KEYS, MEASURES, level)
    table = table.merge(lost.rename("diverged").reset_index(), on=KEYS)
    return table[TABLES["cells"].names]


def best_rates(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per task and arm that was trained at several learning rates.

    ``loss`` and ``accuracy`` are means over ``n`` seeds, each at the rate that was chosen for it
    (``normscope.statistics.tuning.choose``), and ``best`` is the rate of most of
    them. Rates at which a run diverged are not chosen.
    """
    rows = []
    for key, group in split(runs, ["task", "arm"]):
        tried = group["learning_rate"]
        row: dict = key | {"rates": tried.nunique()}
        ends = choose(group[~tried.isin(tried[group["diverged_at"].notna()])], [], by="loss")
        if len(ends):
            most = commonest_setting(ends)
            row |= {"best": most["rate"], "at_edge": most["at_edge"], "n": len(ends)}
            row |= ends[["loss", "accuracy"]].mean().to_dict()
        rows.append(row)
    table = pd.DataFrame(rows, columns=TABLES["best"].names)
    return table[table["rates"] > 1]


def factor_levels(arms: Iterable[str]) -> pd.DataFrame:
    """Center, radius, gain and bias of the arms with token statistics, one row per arm.

    A learned radius is not a level: training changes it. If arms differ in none of these factors
    (but in eps, for instance), only the first one in the registry is listed; the others would
    count as repetitions of it.
    """
    norms = {arm: ARMS[arm].norm for arm in ARMS if arm in set(arms)}
    rows = [
        [arm, *(getattr(norm, factor) for factor in LEVELS)]
        for arm, norm in norms.items()
        if norm.statistic == "token" and norm.radius in LEVELS["radius"]
    ]
    table = pd.DataFrame(rows, columns=["arm", *LEVELS], dtype=object)
    return table.replace({True: "yes", False: "no"}).drop_duplicates([*LEVELS])


def with_factors(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with the factors of their norms; an arm without token statistics has none."""
    return runs.merge(factor_levels(runs["arm"]), on="arm", how="left")


def factor_effects(runs: pd.DataFrame, level: float) -> pd.DataFrame:
    """Effects of the factors on every response, over the seeds whose grid is complete.

    Args:
        runs: of one task and learning rate, with the factors of their norms.
    """
    present = {f: [v for v in order if (runs[f] == v).any()] for f, order in LEVELS.items()}
    factors = {f: levels for f, levels in present.items() if len(levels) > 1}
    parts = []
    for column, name in RESPONSES.items():
        values = runs[column]
        if name.startswith("ln "):
            values = np.log(values.where(values > 0))
        estimates = effects(runs.assign(**{column: values}), factors, column, level)
        parts.append(estimates.assign(response=name))
    return pd.concat(parts, ignore_index=True)[TABLES["factors"].names]
