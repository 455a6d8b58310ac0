"""From the models of a card to its tables: outcomes, differences to LayerNorm, sensitivity."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from normscope.io.tables import collect
from normscope.statistics.levels import FEWEST
from normscope.statistics.power import detectable
from normscope.statistics.summary import describe, paired_difference, select, split
from normscope.studies.card.recipe import EVAL_TOKENS, REFERENCE, SWEPT, CardTables
from normscope.studies.card.tables import NEAR, PROBED, TABLES
from normscope.studies.outcome import with_outcomes
from normscope.studies.stage import TableInputs
from normscope.train.schedule import PILOT, least

RELEVANT = 0.05  # nats, below which a difference of losses is called negligible
CELL = ["arm", "regime"]


def tabulate(recipe: CardTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the card, by name."""
    trials, runs = models(recipe, inputs)
    probes = {job: {"arm": cell.arm} for job, cell in recipe.jobs.items() if cell.regime == SWEPT}
    return {
        "trials": trials,
        "runs": runs,
        "compared": compare(runs, recipe),
        "sensitivity": sensitivity(*(select(t, regime=SWEPT) for t in (trials, runs))),
        **{name: collect(inputs.probes, f"{name}.csv", probes) for name in PROBED},
    }


def models(recipe: CardTables, inputs: TableInputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The pilot models, and the models at the rates that these chose, with their outcomes."""
    keys: dict[str, Mapping[str, object]] = {n: cell._asdict() for n, cell in recipe.jobs.items()}
    of_text = (inputs.corpus, recipe.texts, dict.fromkeys(recipe.texts, EVAL_TOKENS), "regime")
    pilots = collect(inputs.models, PILOT, keys)
    diverged = pd.Series(np.where(pilots["val_loss"].isna(), 0.0, math.nan), index=pilots.index)
    trials = with_outcomes(pilots.assign(diverged_at=diverged), *of_text)
    runs = collect(inputs.models, "metrics.csv", keys).astype({"diverged_at": "Int64"})
    runs = with_outcomes(runs, *of_text).merge(best_rates(pilots), on=CELL)
    return trials[TABLES["trials"].names], runs[TABLES["runs"].names]


def best_rates(pilots: pd.DataFrame) -> pd.DataFrame:
    """The learning rate that the pilot models chose in each cell, and whether it is an edge."""
    rows = []
    for cell, models in split(pilots, CELL):
        losses = by_rate(models)
        best = least(dict(zip(losses.index, losses, strict=True)))
        at_edge = best in (losses.index[0], losses.index[-1])
        rows.append({**cell, "learning_rate": best, "at_edge": at_edge})
    return pd.DataFrame(rows)


def by_rate(models: pd.DataFrame) -> pd.Series:
    """The mean loss at each learning rate, infinite where a model diverged."""
    losses = models.assign(val_loss=models["val_loss"].fillna(math.inf))
    return losses.groupby("learning_rate")["val_loss"].mean()


def compare(runs: pd.DataFrame, recipe: CardTables) -> pd.DataFrame:
    """One row per norm and regime: its loss, and the difference to LayerNorm's, over texts."""
    rows = []
    for cell, models in split(runs, CELL):
        base = select(runs, arm=REFERENCE, regime=cell["regime"]).set_index("seed")["capped_loss"]
        units = models.assign(above=models["capped_loss"] - models["seed"].map(base))
        means = units.groupby("text")[["capped_loss", "above"]].mean()
        above = means["above"].dropna()
        row = {**cell, **describe(means["capped_loss"], recipe.level), "n": len(models)}
        row |= {"failed": int(models["failed"].sum()), "texts": len(above)}
        row |= {"rate": models["learning_rate"].iloc[0], "at_edge": models["at_edge"].iloc[0]}
        row["reads"] = "the reference"
        if cell["arm"] != REFERENCE:
            row |= paired_difference(above, recipe.level)
            row["resolved"] = detectable(len(above), float(above.std()), 1 - recipe.level)
            row["reads"] = reading(row)
        rows.append(row)
    return pd.DataFrame(rows, columns=TABLES["compared"].names)


Outcome = Literal["fails", "undecided", "same", "worse", "better"]


def outcome(row: Mapping[str, Any]) -> Outcome:
    """What a row of table compared shows; same is a difference of less than ``RELEVANT``."""
    low, high = row["difference_low"], row["difference_high"]
    if row["failed"]:
        return "fails"
    if row["texts"] < FEWEST:
        return "undecided"
    if low > -RELEVANT and high < RELEVANT:
        return "same"
    return "worse" if low > 0 else "better" if high < 0 else "undecided"


def reading(row: Mapping[str, Any]) -> str:
    """What a row of table compared shows, in words."""
    if row["failed"]:
        return f"{row['failed']:.0f} of {row['n']:.0f} models fail"
    if row["texts"] < FEWEST:
        return "too few texts"
    shown = outcome(row)
    return f"same, within {RELEVANT} nats" if shown == "same" else shown


def sensitivity(trials: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The range of learning rates within ``NEAR`` of the best, and the largest stable one.

    The best is the one that was chosen. Where all of its models failed, there is no range.

    Args:
        runs: The models at the rates that these chose, of which none may fail at a stable rate.
    """
    rows = []
    for cell, models in split(trials, ["arm"]):
        losses, chosen = by_rate(models), select(runs, **cell)
        best = chosen["learning_rate"].iloc[0]
        near = losses <= losses[best] + NEAR
        ends = [
            side.index[side.cumprod() > 0][-1] for side in (near.loc[:best][::-1], near.loc[best:])
        ]
        learns = select(models, learning_rate=best, failed=0)
        lost = {*select(models, failed=1)["learning_rate"]}
        lost |= {*select(chosen, failed=1)["learning_rate"]}
        stable = [rate for rate in losses.index if rate not in lost]
        low, high = ends if len(learns) else (math.nan, math.nan)
        row = {"best": best, "from": low, "to": high, "stable": max(stable, default=math.nan)}
        rows.append({**cell, **row, "largest": losses.index[-1]})
    return pd.DataFrame(rows, columns=TABLES["sensitivity"].names)
