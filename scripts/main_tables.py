"""Tables of the main study: losses, curves and residual gains, by run and by arm."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset
from normscope.io.tables import collect, write_tables
from normscope.measure.unigram import unigram_loss
from normscope.schema import Strict
from normscope.statistics.outcome import with_outcome
from normscope.statistics.summary import select
from normscope.statistics.tuning import chosen
from normscope.studies.main.recipe import MainTables
from normscope.studies.main.tables import (
    COMPARED,
    KEYS,
    LAWS,
    batches,
    by_arm,
    by_depth,
    compare,
    gains,
    is_covered,
    published,
    rows_of,
    sound,
)

CURVES = [*KEYS, "step", "train_loss", "val_loss"]


class Flags(Strict):
    """Tables of the models of one protocol, arm, placement, learning rate and seed each."""

    recipe: MainTables
    models: Path = Field(description="directory with a folder a training job")
    probes: Path = Field(description="directory with a folder a probe")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl, meta.json")
    published: Path = Field(description="published numbers")
    references: Path = Field(description="directory with the settings that they were had with")
    out: Path = Field(description="directory for the tables")


def all_runs(
    flags: Flags, keys: Mapping[str, Mapping[str, Any]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row a model: its outcome, and the gains where its stream was measured; and the streams."""
    data = dataset.read(flags.data)
    runs = collect(flags.models, "metrics.csv", keys).astype({"diverged_at": "Int64"})
    unigram = unigram_loss(data.train, data.val[1:], data.vocab_size)
    runs = with_outcome(runs, data.vocab_size, unigram)
    probed = {name: keys[name] for name in flags.recipe.probed}
    stream = collect(flags.probes, "stream.csv", probed)
    laws = collect(flags.probes, "laws.csv", probed)[[*KEYS, *LAWS]]
    runs = runs.merge(gains(rows_of(sound(runs), stream)), on=KEYS, how="left")
    return runs.merge(rows_of(sound(runs), laws), on=KEYS, how="left"), stream


def main() -> None:
    flags = parse(Flags)
    recipe, meta = flags.recipe, json.loads((flags.data / "meta.json").read_text())
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    runs, stream = all_runs(flags, keys)
    picked = chosen(runs, COMPARED, by="capped_loss")
    gain, level = rows_of(sound(picked), stream), recipe.level
    jobs = [name for name, cell in recipe.jobs.items() if cell == recipe.baseline]
    ours = json.loads((flags.models / jobs[0] / "config.json").read_text())
    _, arm, placement, _ = recipe.baseline
    ours |= {"baseline": f"{arm}-{placement}", "train_bin_sha256": meta["sha256"]["train.bin"]}
    numbers = pd.read_csv(flags.published)
    settings = [json.loads((flags.references / name).read_text()) for name in numbers["settings"]]
    tables = {
        "runs": runs,
        "chosen": picked,
        "arms": compare(runs, picked, recipe.baseline, level),
        "batches": batches(picked, recipe.batch_sizes),
        "curves": rows_of(picked, collect(flags.models, "curves.csv", keys)[CURVES]),
        "gain": gain,
        "gain_by_depth": by_depth(gain, level),
        "gain_by_arm": by_arm(gain, level),
        "published": published(
            numbers,
            [is_covered(setting, ours) for setting in settings],
            select(runs, **recipe.baseline._asdict()),
            level,
        ),
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
