"""Rule jacobian: what was measured of norms and surrogates, by cell, with intervals."""

import json
import sys
from pathlib import Path

import pandas as pd
from pydantic import Field
from pydantic_settings import CliApp

from normscope.errors import report
from normscope.io import dataset
from normscope.io.csvfile import write_csv
from normscope.io.stored import read
from normscope.measure.unigram import unigram_loss
from normscope.schema import Strict
from normscope.studies.jacobian.grid import Cell, cell_key
from normscope.studies.jacobian.tables import (
    CELL,
    SETTING,
    by_layer,
    chosen,
    costs,
    of_chosen,
    predictions,
    predictors,
)


class Flags(Strict):
    """Tables of the norms' backward pass."""

    cells: str = Field(description="the seeds of every cell, by its name, as JSON")
    runs: Path = Field(description="directory of the runs' directories")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    level: float = Field(description="confidence level of the intervals")
    margin_sds: float = Field(description="standard deviations of a baseline that are a margin")
    out: Path = Field(description="directory with a directory a cell, and for the tables")


def collected(cells: Path, names: list[str], table: str, keys: list[str]) -> pd.DataFrame:
    """A table of every cell, together, with the keys that tell the cells apart in front."""
    parts = []
    for name in names:
        key = cell_key(name)
        parts.append(pd.read_csv(cells / name / table).assign(**{k: key[k] for k in keys}))
    together = pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
    return together[[*keys, *(column for column in parts[0] if column not in keys)]]


def losses(cells: dict[str, list[int]], runs: Path) -> pd.DataFrame:
    """A row a trained model."""
    rows = [
        cell_key(cell)
        | {"seed": seed}
        | read(runs / f"{cell}-{seed}" / "metrics.json", "val_loss", "diverged_at")
        for cell, seeds in cells.items()
        for seed in seeds
    ]
    table = pd.DataFrame(rows, columns=[*Cell._fields, "seed", "val_loss", "diverged_at"])
    return table.astype({"val_loss": float, "diverged_at": "Int64"})


def main() -> None:
    flags = CliApp.run(Flags)
    cells = json.loads(flags.cells)
    exact = [cell for cell in cells if cell_key(cell)["norm_backward"] == "exact"]
    layers = collected(flags.out, exact, "layers.csv", CELL)
    # all of exact models: norm_backward and surrogates_in of a gradient are its surrogate's
    gradients = collected(flags.out, exact, "gradients.csv", [*SETTING, "learning_rate"])
    tables = {"layers": layers, "gradients": gradients}
    tables["losses"] = losses(cells, flags.runs)
    tables["chosen"] = chosen(tables["losses"])
    tables["layers_by_cell"] = by_layer(of_chosen(layers, tables["chosen"]), flags.level)
    data = dataset.read(flags.data)
    unigram = unigram_loss(data.train, data.val[1:], data.vocab_size)
    tables["costs"] = costs(tables["chosen"], flags.level, unigram, flags.margin_sds)
    tables["expected"] = predictors(tables["chosen"], layers, gradients)
    tables["predictions"] = predictions(tables["expected"])
    for name, table in tables.items():
        write_csv(flags.out / f"{name}.csv", table)
    if layers.empty:
        print("no model has a norm layer: the tables of layers are empty", file=sys.stderr)


if __name__ == "__main__":
    report(main)
