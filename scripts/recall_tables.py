"""Tables of the decisive test: all measurements, cells, learning rates, the factors' effects."""

import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io.csvfile import write_csv
from normscope.schema import Strict
from normscope.studies.recall.recipe import RecallTables
from normscope.studies.recall.tables import (
    KEYS,
    best_rates,
    by_cell,
    cell_key,
    factor_effects,
    slice_heights,
    why_no_effects,
)


class Flags(Strict):
    """Tables of the decisive test."""

    recipe: RecallTables
    models: Path = Field(description="directory with a folder a trained model, for their curves")
    probes: Path = Field(description="directory with a folder a cell")
    out: Path = Field(description="directory for the tables")


def collected(probes: Path, cells: Iterable[str], name: str) -> pd.DataFrame:
    """A table of every cell, one below the other, with the cell's key in front."""
    parts = [pd.read_csv(probes / cell / f"{name}.csv").assign(**cell_key(cell)) for cell in cells]
    kept = [p for p in parts if len(p)]  # an empty one would turn numbers into objects
    table = pd.concat(kept, ignore_index=True) if kept else parts[0]
    keys = [*KEYS, "seed"]
    return table[keys + [c for c in table if c not in keys]]


def main() -> None:
    flags = parse(Flags)
    recipe, cells = flags.recipe, flags.recipe.cells
    slices = collected(flags.probes, cells, "slices")
    runs = collected(flags.probes, cells, "metrics").astype({"diverged_at": "Int64"})
    runs = runs.merge(slice_heights(slices), on=[*KEYS, "seed"], how="left")
    curves = [
        pd.read_csv(flags.models / f"{cell}-{seed}" / "curve.csv").assign(
            **cell_key(cell), seed=seed
        )
        for cell, seeds in cells.items()
        for seed in seeds
    ]
    curve = pd.concat(curves, ignore_index=True)[[*KEYS, "seed", "step", "train_loss"]]
    shown = runs[(runs["task"] == recipe.task) & (runs["learning_rate"] == recipe.learning_rate)]
    factors = factor_effects(shown, recipe.level)
    if factors.empty:
        reason = why_no_effects(shown.assign(diverged=shown["diverged_at"].notna().astype(int)))
        print(f"no factor effects: {reason}", file=sys.stderr)
    tables = {
        "runs": runs,
        "cells": by_cell(runs, recipe.level),
        "best": best_rates(runs),
        "curves": curve,
        "slices": slices,
        "spectra": collected(flags.probes, cells, "spectra"),
        "factors": factors,
    }
    for name, table in tables.items():
        write_csv(flags.out / f"{name}.csv", table)


if __name__ == "__main__":
    report(main)
