"""The sentences and tables of the paper, made from the workflow's tables alone."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from normscope.nn.arms import ARMS
from normscope.paper.caption import count, divergences
from normscope.paper.words import Section, interval, number, records
from normscope.statistics.estimate import seeds_needed

FIGURES = {
    "loss": "Validation loss",
    "curves": "Loss curves",
    "gain": "Residual stream by depth",
    "notebook": "Decisive test, as published",
    "decisive": "Decisive test, corrected",
    "slice": "Loss slices, published and corrected",
    "factors": "Factors of a norm",
    "sweep": "Learning rates",
    "jacobian": "What norms remove of the gradient",
    "surrogates": "What surrogates cost",
    "residual": "Residual gain of pretrained models, the published panel",
    "comparison": "Residual gain of pretrained models, sorted",
    "final_norm": "The final norm, the penultimate block, and H25",
    "blocks": "Residual gain by block",
    "sensitivity": "What the answer depends on",
    "beside": "Trained and pretrained models",
    "signals": "The stream and the gradient by block",
    "spectra": "Singular values and angles by block",
    "trainability": "What a short training reaches",
    "textbook": "LayerNorm and BatchNorm, from scratch",
}
NOTES = {
    "batch": """BatchNorm's statistics run over all positions while it trains, later ones included;
its validation loss is with running averages, which look at no other token.""",
    "unit": """Unit L2 also ends the network, in pre and in post placement, with outputs of length
1: over a head tied to an embedding that starts with a standard deviation of 0.02, its logits are
small, and its loss is that of a temperature as much as of a norm.""",
    "pointwise": """DyT and Derf start at alpha = 0.5 in nanoGPT's initialization, whose embeddings
have a standard deviation of 0.02: their outputs start near zero. For language models the authors of
DyT tune alpha and scale the embedding by a learned factor that starts at sqrt(d) (Zhu et al. 2025,
arXiv:2503.10622); neither is done here.""",
}


def name(arm: str, placement: str) -> str:
    """How people call an arm with its placement."""
    label = ARMS[arm].label
    return label if placement == "none" else f"{label}, {placement}"


def loss_table(arms: pd.DataFrame) -> pd.DataFrame:
    """Validation loss by arm: n, mean, interval, difference to the baseline and what it shows."""
    return pd.DataFrame(
        {
            "arm": [name(r.arm, r.placement) for r in records(arms)],
            "n": arms["n"],
            "loss": [number(v) for v in arms["mean"]],
            "interval": [interval(r.low, r.high) for r in records(arms)],
            "difference": [number(v, sign=True) for v in arms["difference"]],
            "its interval": [
                interval(r.difference_low, r.difference_high, sign=True) for r in records(arms)
            ],
            "reads": [verdict(r) for r in records(arms)],
        }
    )


def verdict(row: Any) -> str:
    """What the difference to the baseline shows.

    A claim needs an interval that excludes 0, seeds enough for an exact test to agree at the same
    level, and no run of the arm that diverged: the survivors are a selection.
    """
    if row.n == 0:
        return "diverged"
    if row.diverged:
        return f"{row.diverged} of {row.diverged + row.n} diverged: no claim"
    if math.isnan(row.difference):
        return "baseline" if row.pairs else "no seed shared with the baseline"
    if row.pairs < seeds_needed(row.alpha):
        return f"{row.pairs} seed{'s' if row.pairs > 1 else ''}: no claim"
    if row.difference_low > 0:
        return "worse"
    return "better" if row.difference_high < 0 else "not told apart"


def gain_table(gains: pd.DataFrame) -> pd.DataFrame:
    """Residual gain of the first block, of a later block, and of the last."""
    columns = {"first": "first block", "later": "a later block", "last": "last block"}
    table = {
        "arm": [name(r.arm, r.placement) for r in records(gains)],
        "n": gains["n"].fillna(0).astype(int),
    }
    for key, title in columns.items():
        bounds = zip(gains[f"{key}_low"], gains[f"{key}_high"], strict=True)
        cells = zip(gains[key], bounds, strict=True)
        table[title] = [
            number(v) if n < 2 else f"{number(v)} {interval(*b)}"
            for n, (v, b) in zip(table["n"], cells, strict=True)
        ]
    return pd.DataFrame(table)


class Reference(NamedTuple):
    """The settings that published numbers were had with, and the file that has them."""

    name: str
    settings: Mapping[str, Any]


def section(
    tables: Mapping[str, pd.DataFrame],
    published: pd.DataFrame,
    reference: Reference,
    *,
    config: Mapping[str, Any],
    meta: Mapping[str, Any],
    baseline: str,
) -> Section:
    """What the template of the summary says of the models of one arm each.

    Args:
        tables: runs, arms and gain_by_arm of results/tables.
        published: rows of data/published.csv.
        reference: whose settings ours are compared with.
        config: config.json of a run.
        meta: meta.json of the dataset.
        baseline: arm and placement.
    """
    runs, arms = tables["runs"], tables["arms"]
    ours = {"baseline": baseline, "train_bin_sha256": meta["sha256"]["train.bin"], **config}
    is_baseline, of_baseline = (t["arm"] + "-" + t["placement"] == baseline for t in (arms, runs))
    texts = {
        **config["model"],
        **config["training"],
        "baseline": baseline,
        "needed": seeds_needed(arms["alpha"].iloc[0]),
        "characters": meta["vocab_size"],
        "train": f"{meta['train_tokens']:,}",
        "val": f"{meta['val_tokens']:,}",
        "count": count(runs),
        "divergences": divergences(runs),
        "notes": "\n".join(notes(set(runs["arm"]))),
    }
    shown = published_table(
        published,
        {reference.name: is_covered(reference.settings, ours)},
        arms[is_baseline].iloc[0],
        runs.loc[of_baseline, "val_loss_window_sd"].mean(),
    )
    gains = gain_table(tables["gain_by_arm"])
    return Section(texts, {"published": shown, "loss": loss_table(arms), "gain": gains})


def is_covered(reference: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Whether ``ours`` has every setting of ``reference``, section by section."""
    return all(
        is_covered(value, ours[key]) if isinstance(value, Mapping) else ours[key] == value
        for key, value in reference.items()
    )


def published_table(
    published: pd.DataFrame, comparable: Mapping[str, bool], baseline: pd.Series, window_sd: float
) -> pd.DataFrame:
    """Each published number beside ours, compared only under the settings that it was had with.

    Args:
        published: rows of data/published.csv.
        comparable: for each name in its column ``settings``, whether ours are the same.
        baseline: the baseline's row of arms.csv.
        window_sd: standard deviation of the mean losses of validation windows.
    """
    rows = []
    for p in published.to_dict("records"):
        same = comparable[p["settings"]]
        ours, n = "not comparable: other settings", "–"
        if same and not baseline["n"]:
            ours = "diverged"
        elif same:
            ours = f"{number(baseline['mean'])} {interval(baseline['low'], baseline['high'])}"
            n = str(int(baseline["n"]))
        reason = p["differs_because"]
        if same and baseline["n"] and p["windows"] > 0:  # NaN: not a sample
            error = window_sd / math.sqrt(p["windows"])
            reason += f"; the standard error of such a sample is {error:.3f}"
        rows.append(
            {
                "quantity": p["quantity"],
                "as published": f"{p['value']:g}",
                "protocol": p["protocol"],
                "source": p["source"],
                "corrected": ours,
                "n": n,
                "why they differ": reason,
            }
        )
    return pd.DataFrame(rows)


def notes(arms: set[str]) -> list[str]:
    """What a reader must know of the arms that are there."""
    norms = [ARMS[arm].norm for arm in arms]
    batch = any(norm.statistic == "batch" for norm in norms)
    unit = any(norm.radius == "1" for norm in norms)
    pointwise = any(norm.elementwise for norm in norms)
    there = {"batch": batch, "unit": unit, "pointwise": pointwise}
    return [text for name, text in NOTES.items() if there[name]]
