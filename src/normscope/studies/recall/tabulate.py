"""From the runs of the decisive test to its cells and to the effects of the norms' factors."""

import sys
from collections.abc import Sequence

import numpy as np
import pandas as pd

from normscope.io.tables import collect
from normscope.nn.arms import ARMS
from normscope.statistics.factorial import effects, missing_cells
from normscope.statistics.summary import select, summarize
from normscope.statistics.tuning import chosen
from normscope.studies.recall.measures import FACTORS, HEIGHTS, MEASURES
from normscope.studies.recall.recipe import RecallTables
from normscope.studies.recall.tables import TABLES
from normscope.studies.stage import TableInputs

KEYS = ["task", "arm", "learning_rate"]

# what is analysed by factor; ln where effects multiply
RESPONSES = {
    "loss": "ln loss",
    "calibrated_loss": "ln calibrated loss",
    "accuracy": "accuracy",
    "effective_rank_query": "effective rank",
    "edge": "ln share of Adam's limit",
}
LOGARITHMIC = [column for column, name in RESPONSES.items() if name.startswith("ln ")]


def tabulate(recipe: RecallTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name."""
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    probes = {name: {} for name in recipe.probes}
    slices = collect(inputs.probes, "slices.csv", probes)
    runs = collect(inputs.probes, "metrics.csv", probes).astype({"diverged_at": "Int64"})
    runs = runs.merge(slice_heights(slices), on=[*KEYS, "seed"], how="left")
    shown = select(runs, task=recipe.task, learning_rate=recipe.learning_rate)
    factors = factor_effects(shown, recipe.level)
    if factors.empty:
        reason = why_no_effects(shown.assign(diverged=shown["diverged_at"].notna().astype(int)))
        print(f"no factor effects: {reason}", file=sys.stderr)
    return {
        "runs": with_factors(runs),
        "cells": by_cell(runs, recipe.level),
        "best": best_rates(runs),
        "curves": collect(inputs.models, "curves.csv", keys)[TABLES["curves"].names],
        "slices": slices,
        "spectra": collect(inputs.probes, "spectra.csv", probes),
        "factors": factors,
    }


def slice_heights(slices: pd.DataFrame) -> pd.DataFrame:
    """A row per run, from its loss slices.

    ``rise``: mean of loss at both ends minus loss at 0 over the filter-normalized directions.
    ``hump``: mean loss at the labels nearest 0 of the published slice minus that at its ends, of
    which one is all but where the model was trained.
    """
    keys = [*KEYS, "seed"]
    distance = slices["alpha"].astype(float).abs()
    far, near = (distance.groupby(slices["kind"]).transform(f) for f in ("max", "min"))
    at = np.select([distance == far, np.isclose(distance, near)], ["end", "middle"], "between")
    means = slices.assign(at=at).groupby([*keys, "kind", "at"])["loss"].mean().unstack("at")
    means = means.reindex(columns=["end", "middle"])
    height = (means["end"] - means["middle"]).unstack("kind")
    height = height.reindex(columns=["filter", "published"])
    heights = pd.DataFrame({"rise": height["filter"], "hump": -height["published"]})
    return heights.reset_index()


def by_cell(runs: pd.DataFrame, level: float) -> pd.DataFrame:
    """A row per cell and measure: n models, mean, interval; and how many diverged."""
    lost = runs["diverged_at"].notna().groupby([runs[key] for key in KEYS], sort=False).sum()
    table = summarize(runs, KEYS, (*MEASURES, *HEIGHTS), level)
    table = table.merge(lost.rename("diverged").reset_index(), on=KEYS)
    return table[TABLES["cells"].names]


def swept(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of arms that were trained at more than one learning rate in a task."""
    rates = runs.groupby(["task", "arm"])["learning_rate"].transform("nunique")
    return runs[rates > 1]


def best_rates(runs: pd.DataFrame) -> pd.DataFrame:
    """The learning rate of least mean loss, for each arm that was trained at more than one.

    ``best``: over all seeds; ``at_edge``: it is the smallest or the largest that was tried, so that
    the best may lie beyond. ``loss`` and ``accuracy``: means over ``n`` seeds, each at the rate
    that is best over the *other* seeds, so that no seed affects the rate at which it is reported; a
    single seed uses itself. A rate at which a run diverged is not the best one.
    """
    rows = []
    for (task, arm), group in swept(runs).groupby(["task", "arm"], sort=False):
        lost = group.loc[group["diverged_at"].notna(), "learning_rate"]
        kept = group[~group["learning_rate"].isin(lost)]
        row: dict = {"task": task, "arm": arm, "rates": group["learning_rate"].nunique()}
        if len(kept):
            best, tried = _best(kept), group["learning_rate"]
            row |= {"best": best, "at_edge": best in (tried.min(), tried.max())}
            ends = chosen(kept, ["task", "arm"], by="loss")[["loss", "accuracy"]]
            row |= {"n": len(ends), **ends.mean().to_dict()}
        rows.append(row)
    return pd.DataFrame(rows, columns=TABLES["best"].names)


def _best(runs: pd.DataFrame) -> float:
    """The learning rate of least mean loss."""
    means = runs.groupby("learning_rate")["loss"].mean()
    return float(means.index[int(means.argmin())])


def factor_levels(arms: Sequence[str]) -> pd.DataFrame:
    """Center, radius, gain and bias of the arms with token statistics, a row each.

    A learned radius is not a level: it starts at another level, and training changes it.
    Of arms that these factors do not tell apart (another eps) the first in the registry stands for
    them; the others are left out, as they would pass for repetitions of it.
    """
    arms = sorted(set(arms), key=list(ARMS).index)
    all_norms = {arm: ARMS[arm].norm for arm in arms if ARMS[arm].norm.statistic == "token"}
    norms = {arm: norm for arm, norm in all_norms.items() if norm.radius in FACTORS["radius"]}
    yes = {True: "yes", False: "no"}
    return pd.DataFrame(
        [
            [arm, yes[norm.center], norm.radius, yes[norm.gain], yes[norm.bias]]
            for arm, norm in norms.items()
        ],
        columns=["arm", *FACTORS],
    ).drop_duplicates(list(FACTORS))


def with_factors(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with the factors of their norms; an arm without token statistics has none."""
    levels = factor_levels(list(dict.fromkeys(runs["arm"])))
    return runs.merge(levels, on="arm", how="left", validate="many_to_one")


def crossed(runs: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """The runs of arms with token statistics, with their factors, and the levels that vary."""
    table = runs.merge(factor_levels(list(dict.fromkeys(runs["arm"]))), on="arm")
    present = {f: [v for v in order if (table[f] == v).any()] for f, order in FACTORS.items()}
    return table, {f: levels for f, levels in present.items() if len(levels) > 1}


def factor_effects(runs: pd.DataFrame, level: float) -> pd.DataFrame:
    """Effects of the factors on every response, over the seeds whose grid is complete.

    Args:
        runs: of one task and learning rate.
        level: confidence level.
    """
    table, factors = crossed(runs)
    logs = {column: np.log(table[column].where(table[column] > 0)) for column in LOGARITHMIC}
    table = table.assign(**logs)
    parts = [
        effects(table, factors, column, level).assign(response=name)
        for column, name in RESPONSES.items()
    ]
    estimates = pd.concat(parts, ignore_index=True)
    return estimates[["response", *(c for c in estimates if c != "response")]]


def why_no_effects(runs: pd.DataFrame) -> str:
    """What keeps the factors' effects from being computed.

    Args:
        runs: a row per arm with the column ``diverged`` (models), of one task and learning rate.
    """
    table, factors = crossed(runs)
    if not factors:
        return "the arms differ in no factor of a norm"
    if missing := missing_cells(table, factors):
        cells = "; ".join(", ".join(cell) for cell in missing)
        return f"no arm has these levels of {', '.join(factors)}: {cells}. Add it to recall.runs"
    lost = table.loc[table["diverged"] > 0, "arm"]
    if len(lost):
        return f"a complete crossing in no seed, as runs diverged: {', '.join(dict.fromkeys(lost))}"
    return "no seed has a run of every arm"
