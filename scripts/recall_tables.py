"""Tables of the decisive test: all measurements, cells, learning rates, the factors' effects."""

import sys
from pathlib import Path

from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io.tables import collect, write_tables
from normscope.schema import Strict
from normscope.statistics.summary import select
from normscope.studies.recall.recipe import RecallTables
from normscope.studies.recall.tables import (
    KEYS,
    best_rates,
    by_cell,
    factor_effects,
    slice_heights,
    why_no_effects,
    with_factors,
)

CURVES = [*KEYS, "seed", "step", "train_loss"]


class Flags(Strict):
    """Tables of the decisive test."""

    recipe: RecallTables
    models: Path = Field(description="directory with a folder a training job, for curves")
    probes: Path = Field(description="directory with a folder a probe")
    out: Path = Field(description="directory for the tables")


def main() -> None:
    flags = parse(Flags)
    recipe = flags.recipe
    keys = {name: cell._asdict() for name, cell in recipe.jobs.items()}
    probes = {name: {} for name in recipe.probes}
    slices = collect(flags.probes, "slices.csv", probes)
    runs = collect(flags.probes, "metrics.csv", probes).astype({"diverged_at": "Int64"})
    runs = runs.merge(slice_heights(slices), on=[*KEYS, "seed"], how="left")
    shown = select(runs, task=recipe.task, learning_rate=recipe.learning_rate)
    factors = factor_effects(shown, recipe.level)
    if factors.empty:
        reason = why_no_effects(shown.assign(diverged=shown["diverged_at"].notna().astype(int)))
        print(f"no factor effects: {reason}", file=sys.stderr)
    tables = {
        "runs": with_factors(runs),
        "cells": by_cell(runs, recipe.level),
        "best": best_rates(runs),
        "curves": collect(flags.models, "curves.csv", keys)[CURVES],
        "slices": slices,
        "spectra": collect(flags.probes, "spectra.csv", probes),
        "factors": factors,
    }
    write_tables(flags.out, tables)


if __name__ == "__main__":
    report(main)
