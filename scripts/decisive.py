"""Rule decisive: all measurements of the decisive test as tidy tables, and the factors' effects."""

import sys
from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp, CliPositionalArg

from normscope.errors import report
from normscope.io.csvfile import write_csv
from normscope.schema import Strict
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
    """Collect the decisive test."""

    probes: CliPositionalArg[list[Path]] = Field(description="results/recall/*, one a cell")
    runs: Path = Field(description="directory of the runs, for their curves")
    task: str = Field(description="task in which the factors are crossed")
    learning_rate: float = Field(description="at which they are crossed")
    level: float = Field(description="confidence level")
    out: Path = Field(description="directory for recall*.csv and factors.csv")


def collect(cells: list[Path], name: str) -> pd.DataFrame:
    parts = [pd.read_csv(cell / name).assign(**cell_key(cell.name)) for cell in cells]
    kept = [p for p in parts if len(p)]  # an empty one would turn numbers into objects
    table = pd.concat(kept, ignore_index=True) if kept else parts[0]
    keys = [*KEYS, "seed"]
    return table[keys + [c for c in table if c not in keys]]


def main() -> None:
    flags = CliApp.run(Flags)
    slices, spectra = (collect(flags.probes, f"{name}.csv") for name in ("slices", "spectra"))
    write_csv(flags.out / "recall_slices.csv", slices)
    write_csv(flags.out / "recall_spectra.csv", spectra)
    runs = collect(flags.probes, "metrics.csv").astype({"diverged_at": "Int64"})
    runs = runs.merge(slice_heights(slices), on=[*KEYS, "seed"], how="left")
    write_csv(flags.out / "recall.csv", runs)
    write_csv(flags.out / "recall_cells.csv", by_cell(runs, flags.level))
    write_csv(flags.out / "recall_best.csv", best_rates(runs))
    curves = [
        pd.read_csv(flags.runs / f"{cell.name}-{seed}" / "curve.csv").assign(
            **cell_key(cell.name), seed=seed
        )
        for cell in flags.probes
        for seed in pd.read_csv(cell / "metrics.csv")["seed"]
    ]
    curve = pd.concat(curves, ignore_index=True)
    write_csv(flags.out / "recall_curves.csv", curve[[*KEYS, "seed", "step", "train_loss"]])
    shown = runs[(runs["task"] == flags.task) & (runs["learning_rate"] == flags.learning_rate)]
    found = factor_effects(shown, flags.level)
    if found.empty:
        reason = why_no_effects(shown.assign(diverged=shown["diverged_at"].notna().astype(int)))
        print(f"no factor effects: {reason}", file=sys.stderr)
    write_csv(flags.out / "factors.csv", found)


if __name__ == "__main__":
    report(main)
