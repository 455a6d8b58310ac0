"""Tables of the main study: losses, curves and residual gains, by run and by arm."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io.tables import collect, write_tables
from normscope.schema import Strict
from normscope.studies.main.recipe import MainTables
from normscope.studies.main.tables import (
    KEYS,
    by_arm,
    by_depth,
    compare,
    is_covered,
    log_gains,
)


class Flags(Strict):
    """Tables of the models of one arm, placement and seed each."""

    recipe: MainTables
    models: Path = Field(description="directory with a folder a training job")
    probes: Path = Field(description="directory with a folder a probe")
    dataset: Path = Field(description="meta.json of the dataset")
    published: Path = Field(description="published numbers")
    references: Path = Field(description="directory with the settings that they were had with")
    out: Path = Field(description="directory for the tables")


def published(path: Path, references: Path, ours: Mapping[str, Any]) -> pd.DataFrame:
    """The published numbers, and whether ours were had with the same settings."""
    table = pd.read_csv(path)
    same = [is_covered(json.loads((references / n).read_text()), ours) for n in table["settings"]]
    return table.assign(comparable=same)


def main() -> None:
    flags = parse(Flags)
    recipe, meta = flags.recipe, json.loads(flags.dataset.read_text())
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    runs = collect(flags.models, "metrics.csv", keys).astype({"diverged_at": "Int64"})
    gain = collect(flags.probes, "stream.csv", keys)
    # a model that diverged is in gain.csv and in no mean
    lost = runs.set_index(KEYS)["diverged_at"].notna()
    kept = gain[~lost.loc[pd.MultiIndex.from_frame(gain[KEYS])].to_numpy()]
    first = json.loads((flags.models / next(iter(keys)) / "config.json").read_text())
    ours = {
        "baseline": str(recipe.baseline),
        "train_bin_sha256": meta["sha256"]["train.bin"],
        **first,
    }
    tables = {
        "runs": runs.merge(log_gains(kept), on=KEYS, how="left"),
        "curves": collect(flags.models, "curves.csv", keys),
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
    write_tables(flags.out, tables)


if __name__ == "__main__":
    report(main)
