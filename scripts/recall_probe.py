"""Measure the trained models of one cell of the decisive test."""

from pathlib import Path

import pandas as pd
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io.csvfile import write_csv
from normscope.io.stored import read
from normscope.schema import PositiveInt, Strict
from normscope.studies.recall.measures import MEASURES, SLICE, SPECTRUM
from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.probe import curvature, evaluate, slices, spectra
from normscope.studies.recall.recipe import RecallProbe, RecallRun
from normscope.train import runtime
from normscope.train.weights import fill


class Flags(Strict):
    """Measure trained models: loss, calibration, curvature, spectra, slices."""

    recipe: RecallProbe
    models: Path = Field(description="path of a model's folder but for the seed at its end")
    out: Path = Field(description="directory for metrics.csv, slices.csv, spectra.csv")
    threads: PositiveInt = 1


def load(weights: Path) -> tuple[RecallRun, RecallModel]:
    """A trained model in evaluation mode, and what it was trained by."""
    run = RecallRun(**read(weights.with_name("config.json"), *RecallRun.model_fields))
    model = RecallModel(run.task, run.norm)
    fill(model, weights)
    return run, model


def main() -> None:
    flags = parse(Flags)
    runtime.start("fp32", flags.threads)
    metrics, cuts, values = [], [], []
    for seed in flags.recipe.seeds:
        path = Path(f"{flags.models}-{seed}", "model.safetensors")
        run, model = load(path)
        row = {"seed": run.seed}
        row |= read(path.with_name("metrics.json"), "diverged_at", "parameters")
        if row["diverged_at"] is None:
            ranks, spectrum = spectra(model, run.task)
            row |= evaluate(model, run.task) | curvature(model, run.task) | ranks
            values.append(pd.DataFrame(spectrum, columns=list(SPECTRUM)).assign(seed=run.seed))
            cut = slices(model, run.task, flags.recipe.directions)
            cuts.append(pd.DataFrame(cut, columns=list(SLICE)).assign(seed=run.seed))
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
