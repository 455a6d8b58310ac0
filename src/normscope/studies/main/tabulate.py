"""From runs to arms: means, intervals and differences over trained models at chosen rates."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from normscope.io.tables import collect
from normscope.io.texts import text_folder
from normscope.statistics.summary import BOUNDS, describe, paired_difference, select, split
from normscope.statistics.tuning import chosen, commonest_setting
from normscope.studies.cells import Cell
from normscope.studies.main.recipe import MainTables
from normscope.studies.main.tables import PARTS, PROBED, TABLES
from normscope.studies.outcome import trained_models
from normscope.studies.stage import TableInputs

KEYS = TABLES["runs"].keys
COMPARED = TABLES["arms"].keys
SPLITS = ("train_tokens", "val_tokens")


def tabulate(recipe: MainTables, inputs: TableInputs) -> dict[str, pd.DataFrame]:
    """All tables of the study, by name; ``files`` has published.csv and the settings it names."""
    metas = {text: described(inputs.corpus, text) for text in recipe.texts.values()}
    runs, stream = all_runs(recipe, inputs)
    picked = chosen(runs, COMPARED, by="capped_loss")
    gain, level = rows_of(undiverged(picked), stream), recipe.level
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    curves = collect(inputs.models, "curves.csv", keys)
    return {
        "runs": runs,
        "chosen": picked,
        "arms": compare(runs, picked, recipe.baseline, level),
        "batches": batches(picked, recipe.batch_sizes, recipe.texts),
        "curves": rows_of(picked, curves[TABLES["curves"].names]),
        "gain": gain,
        "gain_by_depth": by_depth(gain, level),
        "gain_by_arm": by_arm(gain, level),
        "published": beside_published(recipe, inputs, runs, metas),
        "corpus": pd.DataFrame(
            {"text": text, "characters": meta["vocab_size"]} | {n: meta[n] for n in SPLITS}
            for text, meta in metas.items()
        ),
    }


def all_runs(recipe: MainTables, inputs: TableInputs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row per model, its outcome and the gains where its stream was measured; the streams."""
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    runs = trained_models(recipe, inputs)
    probed = {name: keys[name] for name in recipe.probed}
    stream = collect(inputs.probes, "stream.csv", probed)
    laws = collect(inputs.probes, "laws.csv", probed)
    laws = laws.reindex(columns=[*KEYS, *(column.name for column in PROBED)])
    runs = runs.merge(gains(rows_of(undiverged(runs), stream)), on=KEYS, how="left")
    return runs.merge(rows_of(undiverged(runs), laws), on=KEYS, how="left"), stream


def described(corpus: Path, text: str) -> dict[str, Any]:
    """The facts about a text that rule dataset recorded."""
    return json.loads((text_folder(corpus, text) / "meta.json").read_text())


def beside_published(
    recipe: MainTables, inputs: TableInputs, runs: pd.DataFrame, metas: Mapping[str, Any]
) -> pd.DataFrame:
    """The published losses and the baseline's, where it was trained with the same settings.

    Args:
        metas: ``meta.json`` of each text.
    """
    jobs = [name for name, cell in recipe.jobs.items() if cell == recipe.baseline]
    ours = json.loads((inputs.models / jobs[0] / "config.json").read_text())
    protocol, arm, placement, _ = recipe.baseline
    tokens = metas[recipe.texts[protocol]]["sha256"]["train.bin"]
    ours |= {"baseline": f"{arm}-{placement}", "train_bin_sha256": tokens}
    numbers = pd.read_csv(inputs.files["published.csv"])
    settings = [json.loads(inputs.files[name].read_text()) for name in numbers["settings"]]
    covered = [is_covered(setting, ours) for setting in settings]
    return published(numbers, covered, select(runs, **recipe.baseline._asdict()), recipe.level)


def compare(runs: pd.DataFrame, chosen: pd.DataFrame, baseline: Cell, level: float) -> pd.DataFrame:
    """One row per protocol, arm and placement, at the rates chosen for it.

    Differences to the baseline are those of the capped losses over shared seeds. Their intervals
    hold jointly at ``level`` within a protocol: Bonferroni over those with more than one pair.

    Args:
        runs: one row per model, at every rate.
        chosen: those at the rates that were chosen.
        baseline: whose arm and placement the others are compared with.
        level: confidence level.
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
            row |= _named("best", describe(group["best_val_loss"], level))
            if (cell["arm"], cell["placement"]) != (baseline.arm, baseline.placement):
                row |= paired_difference(paired, 1 - alpha)
            rows.append(row)
    return pd.DataFrame(rows, columns=TABLES["arms"].names)


def batches(
    chosen: pd.DataFrame, families: Sequence[Mapping[str, int]], texts: Mapping[str, str]
) -> pd.DataFrame:
    """The models of protocols that differ in the batch size alone, smallest size first.

    With ``text``, ``batch_size``, and ``excess``: the capped loss above that of the same arm,
    placement and seed at the greatest batch size that it has.

    Args:
        chosen: models at the rates chosen for them.
        families: batch sizes by protocol; of each family one model and training.
        texts: name of the text, by protocol.
    """
    parts = []
    for sizes in families:
        rows = chosen[chosen["protocol"].isin(list(sizes))]
        rows = rows.assign(text=rows["protocol"].map(texts))
        rows = rows.assign(batch_size=rows["protocol"].map(sizes))
        rows = rows.sort_values("batch_size", kind="stable")
        last = rows.groupby(["arm", "placement", "seed"])["capped_loss"].transform("last")
        rows = rows.assign(excess=rows["capped_loss"] - last)
        several = rows.groupby(["arm", "placement"])["batch_size"].transform("nunique") > 1
        parts.append(rows[several])
    if not parts:
        return pd.DataFrame(columns=TABLES["batches"].names)
    return pd.concat(parts, ignore_index=True)


def _named(name: str, bounds: dict[str, float]) -> dict[str, float]:
    """Mean and interval as columns of a table with several of them."""
    columns = {"mean": name, "low": f"{name}_low", "high": f"{name}_high"}
    return {columns[key]: value for key, value in bounds.items() if key in columns}


def rows_of(runs: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of another table that belong to these models."""
    return table.merge(runs[KEYS].astype({"seed": int, "learning_rate": float}), on=KEYS)


def undiverged(runs: pd.DataFrame) -> pd.DataFrame:
    """The models that did not diverge, which can be measured."""
    return runs[runs["diverged_at"].isna()]


def by_depth(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Means over positions in each run, then over runs.

    Position 0, which attends only to itself, is separate. Norms are averaged in logarithms, as
    gains are.
    """
    table = table.assign(
        positions=np.where(table["position"] == 0, "first", "later"), log_norm=np.log(table["norm"])
    )
    where = [*COMPARED, "positions", "depth", "site"]
    runs = table.groupby([*where, "seed"], sort=False)[["log_norm", "log_gain"]].mean()
    rows = []
    for row, group in split(runs.reset_index(), where):
        for name in ("log_norm", "log_gain"):
            bounds = describe(group[name], level)
            row.update(_named(name, bounds) | ({"n": bounds["n"]} if bounds["n"] else {}))
        rows.append(row)
    return pd.DataFrame(rows, columns=TABLES["gain_by_depth"].names)


def by_arm(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Gains of the first block, of a later block and of the last, as factors with intervals.

    They are geometric means over all positions but the first, over the later blocks, and over runs.
    The first block is separate because the embedding starts small.
    """
    rows = []
    for row, runs in split(gains(table), COMPARED):
        for part in PARTS:
            bounds = describe(runs[f"gain_{part}"], level, geometric=True)
            row.update(_named(part, bounds) | ({"n": bounds["n"]} if bounds["n"] else {}))
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


def is_covered(reference: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Whether ``ours`` has every setting of ``reference``, section by section."""
    return all(
        is_covered(value, ours[key]) if isinstance(value, Mapping) else ours[key] == value
        for key, value in reference.items()
    )


def published(
    table: pd.DataFrame, is_comparable: Sequence[bool], models: pd.DataFrame, level: float
) -> pd.DataFrame:
    """Published numbers, each with n, mean and interval of the baseline's models.

    Args:
        table: one row per number; ``measure`` names the column that it is compared with.
        is_comparable: whether our models were trained with the same settings.
        models: rows of the baseline's models.
        level: confidence level.
    """
    rows = [
        describe(models[measure], level) if is_same else {"n": 0}
        for measure, is_same in zip(table["measure"], is_comparable, strict=True)
    ]
    ours = pd.DataFrame(rows, columns=BOUNDS, index=table.index)
    return table.assign(comparable=list(is_comparable)).join(ours)
