"""Take apart the norm layers of trained models."""

from pathlib import Path

import pandas as pd
import torch
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset, stored
from normscope.io.csvfile import write_csv
from normscope.measure.evaluation import validation_windows
from normscope.measure.windows import as_tensor, draw
from normscope.schema import PositiveInt, Strict
from normscope.studies.jacobian.measures import GRADIENT, LAYER, MEASURES
from normscope.studies.jacobian.probe import Batch, decomposed, names, surrogate_gradients
from normscope.studies.jacobian.recipe import JacobianProbe
from normscope.train import runtime
from normscope.train.outputs import say
from normscope.train.trained import transformers


class Flags(Strict):
    """Take the norm layers of trained models apart."""

    recipe: JacobianProbe
    models: Path = Field(description="folder of the job that trained them")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    out: Path = Field(description="directory for layers.csv and gradients.csv")
    threads: PositiveInt = 1


def batches(tokens: dataset.Dataset, T: int, windows: int, seed: int) -> tuple[Batch, Batch]:
    """The same validation windows for every model; training windows drawn as a training would."""
    # of the next seed: a batch that this model has not begun with
    g = torch.Generator().manual_seed((seed + 1) % 2**63)
    return validation_windows(tokens.val, T, windows), draw(as_tensor(tokens.train), T, windows, g)


def main() -> None:
    flags = parse(Flags)
    device = runtime.start("fp32", flags.threads, flags.recipe.device).device
    data, (stack, models) = dataset.read(flags.data), transformers(flags.models)
    diverged_at = stored.metrics(flags.models)["diverged_at"]
    layers, gradients = [], []
    for seed, model in models.items():
        if not names(model):
            say(f"{flags.models}: the model has no norm layer; nothing to take apart")
        elif pd.notna(diverged_at[seed]):
            say(f"seed {seed}: diverged at step {diverged_at[seed]}; its rows stay empty")
            empty = {"signal": "own", "variant": "corrected", "seed": seed}
            layers += [empty | row for row in names(model)]
        else:
            windows = batches(data, stack.model.block_size, flags.recipe.windows, seed)
            validation, training = ((x.to(device), y.to(device)) for x, y in windows)
            rows = decomposed(model.to(device, torch.float64), validation, training)
            layers += [row | {"seed": seed} for row in rows]
            rows = surrogate_gradients(model.float(), validation)
            gradients += [row | {"seed": seed} for row in rows]
    table = pd.DataFrame(layers, columns=["seed", *LAYER, *MEASURES])
    write_csv(flags.out / "layers.csv", table.astype({"tokens": "Int64"}))
    write_csv(flags.out / "gradients.csv", pd.DataFrame(gradients, columns=["seed", *GRADIENT]))


if __name__ == "__main__":
    report(main)
