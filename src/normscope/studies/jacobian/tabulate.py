"""From trained models to cells: what their norms remove, what surrogates and doses of them cost."""

import math

import numpy as np
import pandas as pd

from normscope.io.tables import collect
from normscope.statistics.summary import describe, select, split, summarize
from normscope.statistics.tuning import choose, commonest_setting
from normscope.studies.jacobian.recipe import SETTING, VARIED, Cell, JacobianTables
from normscope.studies.jacobian.tables import MEASURES, TABLES
from normscope.studies.outcome import trained_models
from normscope.studies.stage import TableInputs

KINDS = ["signal", "variant", "place"]  # of norms, which are averaged
LARGEST = ("error_closed_form", "error_identity", "error_without_gain")  # over norms, not means
LAYER_KEYS = [*VARIED, "signal", "variant", "layer", "place", "index", "kind", "d"]
PARTS = ("blocks", "final", "all", "interaction")
CHOSEN = ["learning_rate", "at_edge", "capped_loss", "failed", "diverged"]
COMPARED = [*SETTING, "learning_rate"]
CURVES = [*Cell._fields, "seed", "step", "sigma"]


def tabulate(recipe: JacobianTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name."""
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    exact = {name: keys[name] for name in recipe.probed}
    layers = collect(inputs.probes, "layers.csv", exact)
    # norm_backward and surrogates_in of a gradient are its surrogate's: the models are all exact
    settings = {name: {k: key[k] for k in COMPARED} for name, key in exact.items()}
    gradients = collect(inputs.probes, "gradients.csv", settings)
    losses = trained_models(recipe, inputs)[TABLES["losses"].names]
    picked = choose_rates(losses)
    paid = surrogates(picked, gradients)
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
    """The rows of the models that were trained at the rate chosen for them."""
    keys = [*VARIED, "seed", "learning_rate"]
    dtypes = dict.fromkeys(("radial_share", "sigma_penalty", "learning_rate"), float) | {
        "seed": int
    }
    return table.astype(dtypes).merge(picked[keys].astype(dtypes), on=keys)


def by_layer(layers: pd.DataFrame, level: float) -> pd.DataFrame:
    """One row per cell, signal, variant, norm layer and measure: n models, mean and interval.

    Shares of the mean and radial directions are averaged in logarithms, as they are drawn.
    """
    table = summarize(layers, LAYER_KEYS, MEASURES, level, geometric=("r_mean", "r_radial"))
    return table[table["n"] > 0]


def by_place(layers: pd.DataFrame, picked: pd.DataFrame) -> pd.DataFrame:
    """One row per exact model at its chosen rate, signal, variant and place of norms.

    Places are the block norms, the final norm, and all of them. Measures are means over the norms
    of a place, except errors of formulas, which are the largest ones. A model that diverged has
    rows without measures.
    """
    keys = [*VARIED, "learning_rate", "seed"]
    exact = picked.loc[picked["norm_backward"] == "exact", [*keys, "diverged"]]
    exact = exact.astype({"seed": int, "learning_rate": float, "diverged": bool})
    rows = at_chosen_rate(layers, picked)
    rows = pd.concat([rows, rows.assign(place="all")])
    how = {"d": "max"} | dict.fromkeys(MEASURES, "mean") | dict.fromkeys(LARGEST, "max")
    means = rows.groupby([*keys, *KINDS], sort=False).agg(how).reset_index()
    table = exact.merge(means[KINDS].drop_duplicates(), how="cross")
    table = table.merge(means, on=[*keys, *KINDS], how="left")
    table = table[table["diverged"] | table["d"].notna()]
    return table[TABLES["by_place"].names]


def choose_rates(losses: pd.DataFrame) -> pd.DataFrame:
    """Table ``chosen``: one row per seed of a setting and backward pass, at the rate chosen for it.

    A run that diverged has the loss of a uniform predictor (``normscope.statistics.outcome``).
    """
    table = losses.assign(diverged=losses["diverged_at"].notna())
    return choose(table, VARIED, by="capped_loss")[TABLES["chosen"].names]


def surrogates(picked: pd.DataFrame, gradients: pd.DataFrame) -> pd.DataFrame:
    """One row per model trained with a surrogate: its cost, and its cosine with the exact pass.

    ``cost`` is its loss minus that of its exact twin; ``diverged`` and ``failed`` say whether one
    of the two did. ``cosine_parameters`` is measured in the exact twin, and unknown for a dose.

    Args:
        gradients: what was measured of the exact models.
    """
    keys = [*SETTING, "seed"]
    is_exact = picked["norm_backward"] == "exact"
    twin = picked.loc[is_exact, [*keys, *CHOSEN]]
    table = picked[~is_exact].merge(twin, on=keys, suffixes=("", "_exact"))
    table["cost"] = table["capped_loss"] - table["capped_loss_exact"]
    for outcome in ("failed", "diverged"):
        table[outcome] |= table[f"{outcome}_exact"]
    whole = select(gradients, signal="own").rename(
        columns={"cosine": "cosine_parameters", "learning_rate": "learning_rate_exact"}
    )
    keys += ["norm_backward", "surrogates_in", "learning_rate_exact"]
    dtypes = {"seed": int, "learning_rate_exact": float, "sigma_penalty": float}
    table = table.merge(whole[[*keys, "cosine_parameters"]].astype(dtypes), on=keys, how="left")
    table.loc[table["radial_share"] < 1, "cosine_parameters"] = math.nan
    return table[TABLES["surrogates"].names]


def costs(paid: pd.DataFrame, level: float) -> pd.DataFrame:
    """One row per surrogate, dose and setting: its cost over seeds, and how many models failed.

    ``loss`` is the mean loss of the surrogate's models, ``rate`` the learning rate of most of them,
    and ``rate_exact`` that of their exact twins.
    """
    twins = {"learning_rate_exact": "learning_rate", "at_edge_exact": "at_edge"}
    rows = []
    for row, group in split(paid, VARIED):
        exact = commonest_setting(group[[*twins]].rename(columns=twins))
        row.update({name: int(group[name].sum()) for name in ("failed", "diverged")})
        row.update(loss=group["capped_loss"].mean(), cosine=group["cosine_parameters"].mean())
        row.update(commonest_setting(group) | {f"{name}_exact": x for name, x in exact.items()})
        rows.append(row | describe(group["cost"], level))
    return pd.DataFrame(rows, columns=TABLES["costs"].names)


def slopes(paid: pd.DataFrame) -> pd.DataFrame:
    """One row per setting, place and seed: how the cost grows with what center_scale leaves in.

    ``slope``, in nats from none to all of the radial part, is that of a line by least squares
    through the costs of a seed, with a cost of 0 at a share of 0.
    """
    keys = [*SETTING, "surrogates_in", "seed"]
    rows = []
    for key, group in split(select(paid, norm_backward="center_scale"), keys):
        shares, of_shares = [0.0, *group["radial_share"]], [0.0, *group["cost"]]
        line = np.polyfit(shares, of_shares, 1)
        rows.append(key | {"slope": line[0], "failed": int(group["failed"].max())})
    return pd.DataFrame(rows, columns=TABLES["slopes"].names)


def parts(paid: pd.DataFrame, level: float) -> pd.DataFrame:
    """Where a surrogate's cost comes from: one row per setting, surrogate and part.

    Parts are its costs in the blocks alone, in the final norm alone and in all norms, and the
    ``interaction``, by which the last exceeds the sum of the others, seed by seed.
    """
    keys = [*SETTING, "norm_backward", "seed"]
    whole = select(paid, radial_share=1.0)
    at = whole.pivot(index=keys, columns="surrogates_in", values="cost")
    at = at.reindex(columns=["blocks", "final", "all"]).dropna().reset_index()
    at["interaction"] = at["all"] - at["blocks"] - at["final"]
    return summarize(at, [*SETTING, "norm_backward"], PARTS, level)


def sigma(curves: pd.DataFrame, picked: pd.DataFrame, level: float) -> pd.DataFrame:
    """The standard deviation before the final norm during training: one row per cell and step.

    It is the geometric mean over the models at their chosen rates, with its interval.
    """
    kept = at_chosen_rate(curves, picked)
    return summarize(kept, [*VARIED, "step"], ["sigma"], level, geometric=["sigma"])
