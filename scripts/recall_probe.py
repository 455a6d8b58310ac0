"""Measure trained models of the decisive test."""

from pathlib import Path

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import stored
from normscope.io.csvfile import write_csv
from normscope.io.stored import read
from normscope.schema import PositiveInt, Strict
from normscope.studies.recall.measures import MEASURES, SLICE, SPECTRUM
from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.probe import curvature, evaluate, slices, spectra
from normscope.studies.recall.recipe import RecallProbe, RecallStack, Task
from normscope.train import runtime
from normscope.train.weights import load


class Flags(Strict):
    """Measure trained models: loss, calibration, curvature, spectra, slices."""

    recipe: RecallProbe
    models: Path = Field(description="folder of the job that trained them")
    out: Path = Field(description="directory for metrics.csv, slices.csv, spectra.csv")
    threads: PositiveInt = 1


def trained(folder: Path) -> tuple[Task, dict[int, RecallModel]]:
    """What the models of a job were trained on, and they by seed, in evaluation mode."""
    stack = RecallStack(**read(folder / "config.json", *RecallStack.model_fields))
    weights = folder / "models.safetensors"
    return stack.task, load(weights, lambda: RecallModel(stack.task, stack.norm))


def main() -> None:
    flags = parse(Flags)
    device = runtime.start("fp32", flags.threads, flags.recipe.device).device
    task, models = trained(flags.models)
    ends = stored.metrics(flags.models)[["diverged_at", "parameters"]]
    metrics, cuts, values = [], [], []
    for seed, model in models.items():
        row = {"seed": seed, **ends.loc[seed].to_dict()}
        if pd.isna(row["diverged_at"]):
            ranks, spectrum = spectra(model.to(device), task)
            row |= evaluate(model, task) | curvature(model, task) | ranks
            values.append(pd.DataFrame(spectrum, columns=list(SPECTRUM)).assign(seed=seed))
            cut = slices(model, task, flags.recipe.directions)
            cuts.append(pd.DataFrame(cut, columns=list(SLICE)).assign(seed=seed))
        metrics.append(row)
    columns = ["seed", "diverged_at", "parameters", *MEASURES]
    table = pd.DataFrame(metrics, columns=columns).astype({"diverged_at": "Int64"})
    write_csv(flags.out / "metrics.csv", table)
    for name, parts, columns in (("slices", cuts, SLICE), ("spectra", values, SPECTRUM)):
        empty = pd.DataFrame(columns=["seed", *columns])
        table = pd.concat(parts, ignore_index=True) if parts else empty
        write_csv(flags.out / f"{name}.csv", table[["seed", *columns]])


if __name__ == "__main__":
    report(main)
