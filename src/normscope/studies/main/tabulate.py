"""From runs to arms: means, intervals and differences over trained models at chosen rates."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from normscope.io.tables import collect
from normscope.io.texts import text_folder
from normscope.statistics.summary import describe, paired_difference, select, split
from normscope.statistics.tuning import choose, commonest_setting
from normscope.studies.cells import Cell
from normscope.studies.main.measures import FOLDINGS, LAWS, MEASURES, PARTS
from normscope.studies.main.published import compare_published
from normscope.studies.main.recipe import STARTS, MainTables
from normscope.studies.main.tables import TABLES
from normscope.studies.outcome import trained_models
from normscope.studies.stage import TableInputs

KEYS = TABLES["runs"].keys
COMPARED = TABLES["arms"].keys
SPLITS = ("train_tokens", "val_tokens")
DETACHED, EXACT = "detached", "brief"  # protocols that differ in the backward pass of the norms


def tabulate(recipe: MainTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name; ``files`` has published.csv and the settings it names."""
    texts = dict.fromkeys(itertools.chain(*recipe.texts.values()))
    metas = {text: text_facts(inputs.corpus, text) for text in texts}
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    curves = collect(inputs.models, "curves.csv", keys)
    probed = {
        table: collect(inputs.probes, f"{table}.csv", {name: keys[name] for name in recipe.probed})
        for table in ("stream", "laws", "models", "blocks", "norms")
    }
    starts: dict[str, dict[str, str]] = {STARTS: {}}
    networks = collect(inputs.probes, "networks.csv", starts)
    runs = all_runs(recipe, inputs, curves, probed)
    picked = choose(runs, COMPARED, by="capped_loss")
    level = recipe.level
    return {
        "runs": runs,
        "chosen": picked,
        "arms": compare(runs, picked, recipe.baseline, level),
        "batches": batches(picked, recipe.batch_sizes)[TABLES["batches"].names],
        "curves": rows_of(picked, curves[TABLES["curves"].names]),
        "gain_by_arm": by_arm(rows_of(without_diverged(picked), probed["stream"]), level),
        "published": compare_published(recipe, inputs, runs, metas),
        "corpus": pd.DataFrame(
            {"text": text, "characters": meta["vocab_size"]} | {n: meta[n] for n in SPLITS}
            for text, meta in metas.items()
        ),
        "differences": differences(picked, recipe.other_arm, recipe.other_placement),
        "sweeps": sweeps(runs),
        "blocks": rows_of(picked, probed["blocks"])[TABLES["blocks"].names],
        "norms": rows_of(picked, probed["norms"])[TABLES["norms"].names],
        "networks": networks,
        "slopes": slopes(networks),
        "towers": collect(inputs.probes, "towers.csv", starts),
    }


def all_runs(
    recipe: MainTables,
    inputs: TableInputs,
    curves: pd.DataFrame,
    probed: Mapping[str, pd.DataFrame],
) -> pd.DataFrame:
    """One row per model: its outcome, and what was measured of it."""
    runs = trained_models(recipe, inputs)
    measured = without_diverged(runs)
    parts = [gains(rows_of(measured, probed["stream"]))]
    for table, columns in (("laws", (*LAWS, *FOLDINGS)), ("models", MEASURES)):
        names = [*KEYS, *(column.name for column in columns)]
        parts.append(probed[table].reindex(columns=names))
    for part in parts:  # the last recorded step of a model that diverged is not its end
        runs = runs.merge(rows_of(measured, part), on=KEYS, how="left")
    return runs[TABLES["runs"].names]


def text_facts(corpus: Path, text: str) -> dict[str, Any]:
    """The facts about a text that rule dataset recorded."""
    return json.loads((text_folder(corpus, text) / "meta.json").read_text())


def compare(runs: pd.DataFrame, chosen: pd.DataFrame, baseline: Cell, level: float) -> pd.DataFrame:
    """One row per protocol, arm and placement, at the rates chosen for it.

    Differences to the baseline are those of the capped losses over shared seeds. Their intervals
    hold jointly at ``level`` within a protocol: Bonferroni over those with more than one pair.

    Args:
        chosen: those at the rates that were chosen.
        baseline: whose arm and placement the others are compared with.
    """
    tried = runs.groupby(COMPARED, sort=False)["learning_rate"].nunique().to_dict()
    rows = []
    for _, of_protocol in chosen.groupby("protocol", sort=False):
        same = select(of_protocol, arm=baseline.arm, placement=baseline.placement)
        reference = same.set_index("seed")["capped_loss"]
        others = of_protocol.drop(index=same.index)
        pairs = others[others["seed"].isin(reference.index)]
        compared = int((pairs.groupby(["arm", "placement"]).size() > 1).sum())
        alpha = (1 - level) / max(compared, 1)
        for cell, group in split(of_protocol, COMPARED):
            loss = group.set_index("seed")["capped_loss"]
            paired = (loss - reference).dropna()
            row = cell | commonest_setting(group) | describe(loss, level)
            row |= {"rates": tried[tuple(cell.values())], "alpha": alpha, "pairs": len(paired)}
            row |= {"diverged": group["diverged_at"].count(), "failed": group["failed"].sum()}
            row |= _columns("best", describe(group["best_val_loss"], level))
            if (cell["arm"], cell["placement"]) != (baseline.arm, baseline.placement):
                row |= paired_difference(paired, 1 - alpha)
            rows.append(row)
    return pd.DataFrame(rows, columns=TABLES["arms"].names)


def batches(chosen: pd.DataFrame, families: Sequence[Mapping[str, int]]) -> pd.DataFrame:
    """The models of protocols that differ in the batch size alone, smallest size first.

    With ``batch_size``, and ``excess``: the capped loss above that of the same arm,
    placement and seed at the greatest batch size that it has.

    Args:
        families: batch sizes by protocol; of each family one model and training.
    """
    parts = []
    for sizes in families:
        rows = chosen[chosen["protocol"].isin(list(sizes))]
        rows = rows.assign(batch_size=rows["protocol"].map(sizes))
        rows = rows.sort_values("batch_size", kind="stable")
        last = rows.groupby(["arm", "placement", "seed"])["capped_loss"].transform("last")
        rows = rows.assign(excess=rows["capped_loss"] - last)
        several = rows.groupby(["arm", "placement"])["batch_size"].transform("nunique") > 1
        parts.append(rows[several])
    if not parts:
        return pd.DataFrame(columns=TABLES["batches"].names)
    return pd.concat(parts, ignore_index=True)


def _columns(name: str, bounds: dict[str, float]) -> dict[str, float]:
    """Mean and interval as columns of a table with several of them."""
    columns = {"mean": name, "low": f"{name}_low", "high": f"{name}_high"}
    return {columns[key]: value for key, value in bounds.items() if key in columns}


def rows_of(runs: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of another table that belong to these models."""
    types = {"seed": int, "learning_rate": float}  # empty tables have none
    return table.astype(types).merge(runs[KEYS].astype(types), on=KEYS)


def without_diverged(runs: pd.DataFrame) -> pd.DataFrame:
    """The models that did not diverge, which can be measured."""
    return runs[runs["diverged_at"].isna()]


def by_arm(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Gains of the first block, of a later block and of the last, as factors with intervals.

    They are geometric means over all positions but the first, over the later blocks, and over runs.
    The first block is separate because the embedding starts small.
    """
    rows = []
    for row, runs in split(gains(table), COMPARED):
        for part in PARTS:
            bounds = describe(runs[f"gain_{part}"], level, geometric=True)
            row.update(_columns(part, bounds) | ({"n": bounds["n"]} if bounds["n"] else {}))
        rows.append(row)
    return pd.DataFrame(rows, columns=TABLES["gain_by_arm"].names)


def gains(table: pd.DataFrame) -> pd.DataFrame:
    """One row per run: gains of the first block, of a later one and of the last.

    They are geometric means over all positions but the first.
    """
    blocks = table[table["site"].str.startswith("block_") & (table["position"] > 0)]
    runs, depth = [blocks[key] for key in KEYS], blocks["depth"]
    last = depth.groupby(runs).transform("max")
    parts = dict(zip(PARTS, (depth == 1, depth > 1, depth == last), strict=True))
    means = {
        f"gain_{part}": np.exp(blocks["log_gain"].where(rows).groupby(runs, sort=False).mean())
        for part, rows in parts.items()
    }
    return pd.DataFrame(means).reset_index()


def differences(picked: pd.DataFrame, other_arm: str, other_placement: str) -> pd.DataFrame:
    """One row per model: its loss over those of the baseline's arm, placement and both."""
    at = ["protocol", "seed", "arm", "placement"]
    by = picked.set_index(at)[["capped_loss", "failed"]]
    changes = {
        "itself": {},
        "arm": {"arm": other_arm},
        "placement": {"placement": other_placement},
        "both": {"arm": other_arm, "placement": other_placement},
    }
    others = {
        name: by.reindex(pd.MultiIndex.from_frame(picked.assign(**change)[at])).reset_index()
        for name, change in changes.items()
    }
    loss = pd.DataFrame({name: rows["capped_loss"] for name, rows in others.items()})
    failed = pd.DataFrame({name: rows["failed"] for name, rows in others.items()})
    of_arm, of_placement = loss["itself"] - loss["arm"], loss["itself"] - loss["placement"]
    return (
        picked[KEYS]
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


def sweeps(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per cell and seed that was trained at several rates: its sensitivity to the rate.

    The sensitivity is the mean excess of the capped loss over the loss at the best rate (Wortsman
    et al. 2023, arXiv:2309.14322, section 2.2). The best rate is that of the pilot models, so that
    the smallest of several noisy losses is not chosen; without pilot models there is none.
    """
    by = [*COMPARED, "seed"]
    tuned = runs.dropna(subset=["pilot_loss"])
    best = tuned.loc[tuned.groupby(COMPARED)["pilot_loss"].idxmin(), [*COMPARED, "learning_rate"]]
    at_best = runs.merge(best, on=[*COMPARED, "learning_rate"])[[*by, "capped_loss"]]
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
