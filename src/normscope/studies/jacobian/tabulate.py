"""From trained models to cells: what their norms remove, what surrogates and doses of them cost."""

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from normscope.io import dataset
from normscope.io.tables import collect
from normscope.statistics import tuning
from normscope.statistics.outcome import unigram_loss, with_outcome
from normscope.statistics.summary import describe, select, split, summarize
from normscope.statistics.tuning import commonest_setting
from normscope.studies.jacobian.measures import COSINES, KINDS, MEASURES, SURROGATES
from normscope.studies.jacobian.recipe import SETTING, VARIED, Cell, JacobianTables
from normscope.studies.jacobian.tables import TABLES
from normscope.studies.stage import TableInputs

LARGEST = ("error_closed_form", "error_identity", "error_without_gain")  # over norms, not means
LAYER_KEYS = [*VARIED, "signal", "variant", "layer", "place", "index", "kind", "d"]
PARTS = ("blocks", "final", "all", "interaction")
RATES = ["learning_rate", "at_edge", "learning_rate_exact", "at_edge_exact"]
CHOSEN = ["learning_rate", "at_edge", "capped_loss", "failed", "diverged"]
COMPARED = [*SETTING, "learning_rate"]
LOSSES = [*Cell._fields, "seed", "val_loss", "diverged_at"]
CURVES = [*Cell._fields, "seed", "step", "sigma"]


def tabulate(recipe: JacobianTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name."""
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    exact = {name: keys[name] for name in recipe.probed}
    layers = collect(inputs.probes, "layers.csv", exact)
    if layers.empty:
        print("no model has a norm layer: the tables of layers are empty", file=sys.stderr)
    # norm_backward and surrogates_in of a gradient are its surrogate's: the models are all exact
    settings = {name: {k: key[k] for k in COMPARED} for name, key in exact.items()}
    gradients = collect(inputs.probes, "gradients.csv", settings)
    data = dataset.read(inputs.corpus)
    unigram = unigram_loss(data.train, data.val[1:], data.vocab_size)
    losses = collect(inputs.models, "metrics.csv", keys)[LOSSES]
    losses = losses.astype({"val_loss": float, "diverged_at": "Int64"})
    losses = with_outcome(losses, data.vocab_size, unigram)
    picked = chosen(losses)
    paid = surrogates(picked, layers, gradients)
    curves = collect(inputs.models, "curves.csv", keys).reindex(columns=CURVES)
    return {
        "layers": layers,
        "gradients": gradients,
        "losses": losses,
        "chosen": picked,
        "layers_by_cell": by_layer(at_chosen_rate(layers, picked), recipe.level),
        "by_place": by_place(layers, picked),
        "surrogates": paid,
        "costs": costs(paid, recipe.level),
        "slopes": slopes(paid),
        "parts": parts(paid, recipe.level),
        "sigma": sigma(curves.dropna(subset="sigma"), picked, recipe.level),
    }


def at_chosen_rate(table: pd.DataFrame, picked: pd.DataFrame) -> pd.DataFrame:
    """The rows of the models that were trained at the rate chosen for them.

    Args:
        table: with the columns of a cell, and seed.
        picked: rows of ``chosen``.
    """
    keys = [*VARIED, "seed", "learning_rate"]
    dtypes = dict.fromkeys(("radial_share", "sigma_penalty", "learning_rate"), float) | {
        "seed": int
    }
    return table.astype(dtypes).merge(picked[keys].astype(dtypes), on=keys)


def by_layer(layers: pd.DataFrame, level: float) -> pd.DataFrame:
    """A row per cell, signal, variant, norm layer and measure: n models, mean and interval.

    Args:
        layers: rows of ``at_chosen_rate``.
        level: confidence level.
    """
    table = summarize(layers, LAYER_KEYS, MEASURES, level)
    return table[table["n"] > 0]


def by_place(layers: pd.DataFrame, picked: pd.DataFrame) -> pd.DataFrame:
    """A row per exact model at its chosen rate, signal, variant and place of norms: means.

    Places are the block norms, the final norm, and all of them; of the errors of formulas, and of
    what the gain changes, the largest. A model that diverged has rows without measures.

    Args:
        layers: layers.csv, one row per norm.
        picked: rows of ``chosen``.
    """
    keys = [*VARIED, "learning_rate", "seed"]
    exact = picked.loc[picked["norm_backward"] == "exact", [*keys, "diverged"]]
    exact = exact.astype({"seed": int, "learning_rate": float, "diverged": bool})
    rows = at_chosen_rate(layers, picked)
    rows = pd.concat([rows, rows.assign(place="all")])
    largest = {name: "max" for name in MEASURES if name in LARGEST}
    how = {"d": "max"} | dict.fromkeys(MEASURES, "mean") | largest
    means = rows.groupby([*keys, *KINDS], sort=False).agg(how).reset_index()
    table = exact.merge(means[list(KINDS)].drop_duplicates(), how="cross")
    table = table.merge(means, on=[*keys, *KINDS], how="left")
    table = table[table["diverged"] | table["d"].notna()]
    return table[TABLES["by_place"].names]


def chosen(losses: pd.DataFrame) -> pd.DataFrame:
    """One row per cell but for its learning rate, and seed: the loss at the rate chosen for it.

    The rate is that of least mean loss over the *other* seeds, so that the choice has not seen the
    loss that is reported; with one seed, over that seed. A run that diverged has the loss of
    knowing nothing (``normscope.statistics.outcome``).

    Args:
        losses: a row per model, with the columns of a cell, seed, capped_loss, failed, diverged_at.
    """
    table = losses.assign(diverged=losses["diverged_at"].notna())
    return tuning.chosen(table, VARIED, by="capped_loss")[TABLES["chosen"].names]


def with_costs(picked: pd.DataFrame) -> pd.DataFrame:
    """The models trained with a surrogate, each with ``cost``: its loss above its exact twin's.

    ``diverged`` and ``failed``: of either of them.

    Args:
        picked: rows of ``chosen``.
    """
    is_exact = picked["norm_backward"] == "exact"
    twin = picked.loc[is_exact, [*SETTING, "seed", *CHOSEN]]
    pairs = picked[~is_exact].merge(twin, on=[*SETTING, "seed"], suffixes=("", "_exact"))
    pairs["cost"] = pairs["capped_loss"] - pairs["capped_loss_exact"]
    for outcome in ("failed", "diverged"):
        pairs[outcome] |= pairs[f"{outcome}_exact"]
    return pairs


def surrogates(picked: pd.DataFrame, layers: pd.DataFrame, gradients: pd.DataFrame) -> pd.DataFrame:
    """A row per model trained with a surrogate: what it cost, and its cosines with the exact pass.

    These are measured in the exact twin: means over block norms, at the final norm, and of the
    gradient of all parameters; 1 at norms that are not replaced, and not known of a dose.

    Args:
        picked: rows of ``chosen``.
        layers, gradients: what was measured of the exact models.
    """
    table = with_costs(picked)
    own = select(at_chosen_rate(layers, picked), variant="corrected", signal="own")
    names = [f"cos_{rule}" for rule in SURROGATES]
    keys = [*SETTING, "seed"]
    at = {place: rows.groupby(keys)[names].mean().to_dict() for place, rows in own.groupby("place")}
    records = table.to_dict("records")
    for name, place in (("blocks", "block"), ("final", "final")):
        table[f"cosine_{name}"] = [_cosine(row, name, at.get(place, {})) for row in records]
    whole = select(gradients, signal="own").rename(columns={"cosine": "cosine_parameters"})
    whole = whole.rename(columns={"learning_rate": "learning_rate_exact"})
    keys = [*SETTING, "norm_backward", "surrogates_in", "seed", "learning_rate_exact"]
    dtypes = {"seed": int, "learning_rate_exact": float, "sigma_penalty": float}
    whole = whole[[*keys, "cosine_parameters"]].astype(dtypes)
    table = table.merge(whole, on=keys, how="left")
    table.loc[table["radial_share"] < 1, list(COSINES)] = math.nan
    return table[TABLES["surrogates"].names]


def _cosine(row: dict, name: str, at: Mapping[Any, dict[Any, float]]) -> float:
    """Of a surrogate with the exact pass, in the norms of the blocks or the final one.

    Under DFA what the final norm passes back reaches no parameter.
    """
    is_dropped = row["feedback"] == "dfa" and name == "final"
    if is_dropped or row["surrogates_in"] not in ("all", name):
        return 1.0
    key = tuple(row[k] for k in (*SETTING, "seed"))
    return at.get(f"cos_{row['norm_backward']}", {}).get(key, math.nan)


def costs(paid: pd.DataFrame, level: float) -> pd.DataFrame:
    """A row per surrogate, dose and setting: its cost over seeds, and how many models failed.

    ``loss`` is the mean loss of the surrogate's models, ``rate`` the learning rate of most of them,
    ``rate_exact`` that of their exact twins; ``at_edge``: the best may lie beyond it.

    Args:
        paid: rows of ``surrogates``.
        level: confidence level of the interval.
    """
    rows = [
        cell
        | {name: int(group[name].sum()) for name in ("failed", "diverged")}
        | {"loss": group["capped_loss"].mean(), "cosine": group["cosine_parameters"].mean()}
        | commonest_setting(group)
        | {f"{k}_exact": v for k, v in commonest_setting(_twins(group)).items()}
        | describe(group["cost"], level)
        for cell, group in split(paid, VARIED)
    ]
    return pd.DataFrame(rows, columns=TABLES["costs"].names)


def _twins(paid: pd.DataFrame) -> pd.DataFrame:
    """The learning rates of the exact twins, as ``chosen`` has them."""
    names = {"learning_rate_exact": "learning_rate", "at_edge_exact": "at_edge"}
    return paid[list(names)].rename(columns=names)


def slopes(paid: pd.DataFrame) -> pd.DataFrame:
    """A row per setting, place and seed: by how much a loss grows with what center_scale leaves in.

    ``slope``, in nats from none to all of the radial part: that of a line by least squares through
    the costs of a seed, with 0 at a share of 0; where only all was left in, the cost of that.

    Args:
        paid: rows of ``surrogates``.
    """
    keys = [*SETTING, "surrogates_in", "seed"]
    rows = []
    for key, group in split(select(paid, norm_backward="center_scale"), keys):
        shares, of_shares = [0.0, *group["radial_share"]], [0.0, *group["cost"]]
        line = np.polyfit(shares, of_shares, 1)
        rows.append(key | {"slope": line[0], "failed": int(group["failed"].max())})
    return pd.DataFrame(rows, columns=TABLES["slopes"].names)


def parts(paid: pd.DataFrame, level: float) -> pd.DataFrame:
    """Where a surrogate's cost comes from: a row per setting, surrogate and part.

    Parts are its costs in the blocks alone, in the final norm alone and in all norms, and the
    ``interaction``, by which the last exceeds the sum of the others, seed by seed.

    Args:
        paid: rows of ``surrogates``.
        level: confidence level of the intervals.
    """
    keys = [*SETTING, "norm_backward", "seed"]
    whole = select(paid, radial_share=1.0)
    at = whole.pivot(index=keys, columns="surrogates_in", values="cost")
    at = at.reindex(columns=["blocks", "final", "all"]).dropna().reset_index()
    at["interaction"] = at["all"] - at["blocks"] - at["final"]
    return summarize(at, [*SETTING, "norm_backward"], PARTS, level)


def sigma(curves: pd.DataFrame, picked: pd.DataFrame, level: float) -> pd.DataFrame:
    """A row per cell and step: the standard deviation before the final norm, as training goes on.

    n models at their chosen rates, their geometric mean and its interval.

    Args:
        curves: the rows of curves.csv that have ``sigma``, with the columns of a cell.
        picked: rows of ``chosen``.
        level: confidence level of the intervals.
    """
    return summarize(
        at_chosen_rate(curves, picked), [*VARIED, "step"], ["sigma"], level, geometric=["sigma"]
    )
