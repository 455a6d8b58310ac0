"""Tables of the main study: losses, curves and residual gains, by run and by arm."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io.csvfile import write_csv
from normscope.schema import Strict
from normscope.studies.main.recipe import MainTables
from normscope.studies.main.tables import (
    by_arm,
    by_depth,
    compare,
    is_covered,
    log_gains,
    run_key,
)

KEYS = ["arm", "placement", "seed"]


class Flags(Strict):
    """Tables of the models of one arm, placement and seed each."""

    recipe: MainTables
    models: Path = Field(description="directory with a folder a trained model")
    probes: Path = Field(description="directory with a folder a probed model")
    dataset: Path = Field(description="meta.json of the dataset")
    published: Path = Field(description="published numbers")
    references: Path = Field(description="settings that published numbers were had with, as JSON")
    out: Path = Field(description="directory for the tables")


def collected(runs: list[str], folder: Path, name: str) -> pd.DataFrame:
    """A table of every run, one below the other, with what tells the runs apart in front."""
    parts = [pd.read_csv(folder / run / name).assign(**run_key(run)) for run in runs]
    table = pd.concat(parts, ignore_index=True)
    return table[KEYS + [column for column in table if column not in KEYS]]


def losses(runs: list[str], models: Path) -> pd.DataFrame:
    """A row a run: what its metrics.json has."""
    rows = [run_key(run) | json.loads((models / run / "metrics.json").read_text()) for run in runs]
    return pd.DataFrame(rows).astype(
        {"val_loss": float, "train_loss": float, "diverged_at": "Int64"}
    )


def published(path: Path, references: Path, ours: Mapping[str, Any]) -> pd.DataFrame:
    """The published numbers, and whether ours were had with the same settings."""
    table = pd.read_csv(path)
    same = is_covered(json.loads(references.read_text()), ours)
    return table.assign(comparable=(table["settings"] == references.name) & same)


def main() -> None:
    flags = parse(Flags)
    recipe, meta = flags.recipe, json.loads(flags.dataset.read_text())
    runs, gain = (
        losses(recipe.runs, flags.models),
        collected(recipe.runs, flags.probes, "stream.csv"),
    )
    # a model that diverged is in gain.csv and in no mean
    lost = runs.set_index(KEYS)["diverged_at"].notna()
    kept = gain[~lost.loc[pd.MultiIndex.from_frame(gain[KEYS])].to_numpy()]
    first = json.loads((flags.models / recipe.runs[0] / "config.json").read_text())
    ours = {"baseline": recipe.baseline, "train_bin_sha256": meta["sha256"]["train.bin"], **first}
    tables = {
        "runs": runs.merge(log_gains(kept), on=KEYS, how="left"),
        "curves": collected(recipe.runs, flags.models, "curve.csv"),
        "arms": compare(runs, recipe.baseline, recipe.level),
        "gain": gain,
        "gain_by_depth": by_depth(kept, recipe.level),
        "gain_by_arm": by_arm(kept, recipe.level),
        "published": published(flags.published, flags.references, ours),
        "corpus": pd.DataFrame(
            [
                {
                    "characters": meta["vocab_size"],
                    "train_tokens": meta["train_tokens"],
                    "val_tokens": meta["val_tokens"],
                }
            ]
        ),
    }
    for name, table in tables.items():
        write_csv(flags.out / f"{name}.csv", table)


if __name__ == "__main__":
    report(main)
