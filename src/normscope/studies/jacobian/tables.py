"""From trained models to cells: what their norms remove, what surrogates cost, what predicts it."""

import math
from collections.abc import Sequence

import pandas as pd
import scipy  # its parts load at their first use: figures need none

from normscope.statistics.summary import describe, select, split, summarize
from normscope.studies.jacobian.measures import COSTS, KINDS, MEASURES, PREDICTORS, SURROGATES

SETTING = ["protocol", "arm", "attention", "feedback"]  # what a surrogate is compared within
VARIED = [*SETTING, "norm_backward", "surrogates_in"]  # all but the learning rate
REPLACED = ["protocol", "norm_backward", "surrogates_in"]
ANY = "any"  # surrogate, place
LARGEST = ("error_closed_form", "error_identity", "error_without_gain")  # over norms, not means
LAYER_KEYS = [*VARIED, "signal", "variant", "layer", "place", "index", "kind", "d"]
KEPT = [*VARIED, "seed", *COSTS]

# share of a gradient's energy that a surrogate leaves in where the exact pass removes it
LEFT_IN = {
    "center_scale": ["r_radial"],
    "projected": [],
    "straight_through": ["r_mean", "r_radial"],
}


def at_chosen_rate(layers: pd.DataFrame, picked: pd.DataFrame) -> pd.DataFrame:
    """The rows of the exact models that were trained at the rate chosen for them.

    Args:
        layers: layers.csv.
        picked: rows of ``chosen``.
    """
    keys = [*VARIED, "seed", "learning_rate"]
    dtypes = {"seed": int, "learning_rate": float}
    return layers.astype(dtypes).merge(picked[keys].astype(dtypes), on=keys)


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
        layers: layers.csv, a row a norm.
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
    return table[[*VARIED, "learning_rate", *KINDS, "seed", "diverged", "d", *MEASURES]]


def chosen(losses: pd.DataFrame) -> pd.DataFrame:
    """One row per cell but for its learning rate, and seed: the loss at the rate chosen for it.

    The rate is that of least mean loss over the *other* seeds, so that the choice has not seen the
    loss that is reported; with one seed, over that seed. Before that counts at how few of them a
    rate diverged.

    Args:
        losses: a row per model, with the columns of a cell, seed, val_loss and diverged_at.
    """
    rows = []
    for cell, group in split(losses, VARIED):
        at = group.pivot(index="seed", columns="learning_rate", values="val_loss")
        of_seeds = at.fillna(math.inf).to_dict("index")
        for seed, of_seed in of_seeds.items():
            others = [v for other, v in of_seeds.items() if other != seed] or [of_seed]
            rate = min(of_seed, key=lambda rate, others=others: _badness([v[rate] for v in others]))
            diverged = math.isinf(of_seed[rate])
            loss = math.nan if diverged else of_seed[rate]
            row = {"seed": seed, "learning_rate": rate, "val_loss": loss, "diverged": diverged}
            rows.append(cell | row)
    columns = [*VARIED, "seed", "learning_rate", "val_loss", "diverged"]
    return pd.DataFrame(rows, columns=columns)


def _badness(losses: Sequence[float]) -> tuple[int, float]:
    """How many losses are infinite, then the sum of the others: the less, the better."""
    finite = [v for v in losses if math.isfinite(v)]
    return len(losses) - len(finite), math.fsum(finite)


def with_costs(picked: pd.DataFrame) -> pd.DataFrame:
    """The models trained with a surrogate, each with ``cost``: its loss above its exact twin's.

    Args:
        picked: rows of ``chosen``.
    """
    is_exact = picked["norm_backward"] == "exact"
    twin = picked.loc[is_exact, [*SETTING, "seed", "val_loss", "diverged"]]
    pairs = picked[~is_exact].merge(twin, on=[*SETTING, "seed"], suffixes=("", "_exact"))
    pairs["cost"] = pairs["val_loss"] - pairs["val_loss_exact"]
    pairs["diverged"] |= pairs["diverged_exact"]
    return pairs


def costs(picked: pd.DataFrame, level: float, unigram: float, margin_sds: float) -> pd.DataFrame:
    """A row per surrogate and setting: its cost over seeds, its own interval and a joint one.

    The joint intervals hold together at ``level`` in a protocol (Bonferroni, each at ``alpha``).
    ``margin`` is ``margin_sds`` standard deviations of the exact models' losses over seeds.
    ``loss`` is the mean loss of the surrogate's models; ``unigram`` that of character frequencies:
    a model that does no better has learned nothing else, and its cost is a ceiling.
    """
    pairs = with_costs(picked)
    exact = picked[picked["norm_backward"] == "exact"]
    spread = exact.groupby(SETTING)["val_loss"].std().to_dict()
    rows = []
    for _, of_protocol in pairs.groupby("protocol", sort=False):
        known = of_protocol.groupby(VARIED)["cost"].count()
        alpha = (1 - level) / max(1, int((known > 1).sum()))
        for cell, group in split(of_protocol, VARIED):
            row = {**cell, "alpha": alpha, "diverged": int(group["diverged"].sum())}
            row |= {"margin": margin_sds * spread[tuple(cell[k] for k in SETTING)]}
            row |= {"loss": group.dropna(subset="cost")["val_loss"].mean(), "unigram": unigram}
            joint = describe(group["cost"], 1 - alpha)
            row |= {f"joint_{k}": joint[k] for k in ("low", "high") if k in joint}
            row |= describe(group["cost"], level)
            rows.append(row)
    columns = "n diverged alpha margin loss unigram mean low high joint_low joint_high".split()
    return pd.DataFrame(rows, columns=[*VARIED, *columns])


def with_margins(expected: pd.DataFrame, paid: pd.DataFrame) -> pd.DataFrame:
    """The models, each with the ``margin`` and ``unigram`` of its row in ``costs``."""
    return expected.merge(paid[[*VARIED, "margin", "unigram"]], on=VARIED, how="left")


def _of_exact_models(layers: pd.DataFrame) -> pd.DataFrame:
    """A row per exact model: means over its block norms, and of its final norm, never of both."""
    rows = select(layers, variant="corrected", signal="own")
    measures = [
        "r_mean",
        "r_radial",
        *(f"{x}_{rule}" for x in ("cos", "error") for rule in SURROGATES),
    ]
    keys = [*SETTING, "seed", "learning_rate"]
    blocks, final = (
        rows[rows["place"] == place].groupby(keys)[measures].mean().add_suffix(f"_{place}")
        for place in ("block", "final")
    )
    return blocks.join(final, how="outer").reset_index()


def _expected(row: dict, place: str, column: str) -> dict[str, float]:
    """What a surrogate does to the norms of a place in the exact twin; 0 where it does nothing.

    Under DFA what the final norm passes back reaches no parameter.
    """
    rule, is_dropped = row["norm_backward"], row["feedback"] == "dfa" and column == "final"
    if is_dropped or row["surrogates_in"] not in ("all", column):
        return {f"{name}_{column}": 0.0 for name in ("left_in", "cosine", "error")}

    def at(measure: str) -> float:
        return row.get(f"{measure}_{place}", math.nan)

    return {
        f"left_in_{column}": sum(at(share) for share in LEFT_IN[rule]),
        f"cosine_{column}": 1 - at(f"cos_{rule}"),
        f"error_{column}": at(f"error_{rule}"),
    }


def predictors(picked: pd.DataFrame, layers: pd.DataFrame, gradients: pd.DataFrame) -> pd.DataFrame:
    """The models trained with a surrogate: cost, and what their exact twins let one expect.

    Args:
        picked: rows of ``chosen``.
        layers, gradients: what was measured of the exact models.
    """
    twins = _of_exact_models(at_chosen_rate(layers, picked))
    table = with_costs(picked).drop(columns="learning_rate")
    table = table.merge(twins, on=[*SETTING, "seed"], how="left")
    keys = [*VARIED, "seed", "learning_rate"]
    own = gradients.loc[gradients["signal"] == "own", [*keys, "cosine"]]
    own = own.astype({"seed": int, "learning_rate": float})
    table = table.merge(own, on=keys, how="left")
    rows = [
        {key: row[key] for key in KEPT}
        | _expected(row, "block", "blocks")
        | _expected(row, "final", "final")
        | {"cosine_parameters": 1 - row["cosine"]}
        for row in table.to_dict("records")
    ]
    return pd.DataFrame(rows, columns=[*KEPT, *PREDICTORS])


def predictions(expected: pd.DataFrame) -> pd.DataFrame:
    """Spearman's rank correlation of each predictor with the cost.

    Of one surrogate in one place over settings, which count once, with the mean over their seeds;
    and over all cells of setting, surrogate and place (``any``). A description without a p:
    settings are few and crossed, no sample of independent ones. ``seeds`` is the least number of
    models behind a setting, ``diverged`` how many are missing.

    Args:
        expected: rows of ``predictors``.
    """
    groups = expected.groupby(VARIED, sort=False)
    cells = groups[["cost", *PREDICTORS]].mean().reset_index()
    cells["seeds"] = list(groups["cost"].count())
    cells["diverged"] = list(groups["diverged"].sum())
    kinds = [(key, group) for key, group in cells.groupby(REPLACED, sort=False)]
    of_any = [((key, ANY, ANY), group) for key, group in cells.groupby("protocol", sort=False)]
    rows = []
    for key, group in [*kinds, *of_any]:
        for predictor in PREDICTORS:
            known = group[[predictor, "cost"]].dropna()
            row = dict(zip(REPLACED, key, strict=True)) | {"predictor": predictor, "n": len(known)}
            row |= {"seeds": group["seeds"].min(), "diverged": group["diverged"].sum()}
            rows.append(row | {"rho": _rho(list(known[predictor]), list(known["cost"]))})
    columns = ["n", "seeds", "diverged", "rho"]
    return pd.DataFrame(rows, columns=[*REPLACED, "predictor", *columns])


def _rho(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's rho; NaN below 3 pairs, or where x or y is constant."""
    if len(x) < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        return math.nan
    return float(scipy.stats.spearmanr(x, y).statistic)
