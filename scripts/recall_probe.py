"""Measure the trained models of a task of the decisive test."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import torch
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import stored
from normscope.io.csvfile import write_csv
from normscope.io.stored import read
from normscope.schema import PositiveInt, Strict
from normscope.studies.recall.measures import MEASURES, SLICE, SPECTRUM
from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.probe import Row, curvature, evaluate, slices, spectra
from normscope.studies.recall.recipe import Cell, RecallProbe, RecallStack
from normscope.train import runtime
from normscope.train.optimizer import stability_limit
from normscope.train.weights import load, tensors_by_seed

ENDS = ("diverged_at", "parameters", *MEASURES)
TABLES = {"slices": SLICE, "spectra": SPECTRUM}
Parts = dict[str, list[Row]]


class Flags(Strict):
    """Measure the trained models of a task: loss, calibration, curvature, spectra, slices."""

    recipe: RecallProbe
    models: Path = Field(description="directory with a folder a training job")
    out: Path = Field(description="directory for metrics.csv, slices.csv, spectra.csv")
    threads: PositiveInt = 1


def trained(folder: Path) -> tuple[RecallStack, dict[int, RecallModel]]:
    """What the models of a job were trained by, and they by seed, in evaluation mode."""
    stack = RecallStack(**read(folder / "config.json", *RecallStack.model_fields))
    weights = folder / "models.safetensors"
    return stack, load(weights, lambda: RecallModel(stack.task, stack.norm))


def measured(folder: Path, directions: int, device: torch.device) -> Iterator[tuple[Row, Parts]]:
    """Of every model of a job, by seed: its row of metrics, and its rows of the other tables."""
    stack, models = trained(folder)
    task, training = stack.task, stack.training
    limit = stability_limit(training.learning_rate, training.beta1)
    moments = tensors_by_seed(folder / "moments.safetensors")
    ends = stored.metrics(folder)[["diverged_at", "parameters"]]
    for seed, model in models.items():
        row, parts = {"seed": seed, **ends.loc[seed].to_dict()}, {}
        if pd.isna(row["diverged_at"]):
            ranks, parts["spectra"] = spectra(model.to(device), task)
            row |= evaluate(model, task) | ranks
            row |= curvature(model, task, moments[seed], limit)
            parts["slices"] = slices(model, task, directions)
        yield row, parts


def main() -> None:
    flags = parse(Flags)
    device = runtime.start("fp32", flags.threads, flags.recipe.device).device
    tables: dict[str, list[Row]] = {"metrics": [], **{name: [] for name in TABLES}}
    for name, cell in flags.recipe.jobs.items():
        for row, parts in measured(flags.models / name, flags.recipe.directions, device):
            key = {**cell._asdict(), "seed": row["seed"]}
            tables["metrics"].append(key | row)
            for table, rows in parts.items():
                tables[table] += [key | row for row in rows]
    for name, columns in {"metrics": ENDS, **TABLES}.items():
        table = pd.DataFrame(tables[name], columns=[*Cell._fields, "seed", *columns])
        if name == "metrics":
            table = table.astype({"diverged_at": "Int64"})
        write_csv(flags.out / f"{name}.csv", table)


if __name__ == "__main__":
    report(main)
