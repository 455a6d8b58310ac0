"""Measure trained models: norms and log-gains of their residual stream, per position."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch
from pydantic import Field
from torch import Tensor, nn

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset
from normscope.io.csvfile import write_csv
from normscope.measure.residual import log_gain, site_names, stream_norms
from normscope.measure.windows import EVAL_BATCH, as_tensor, spread
from normscope.nn.model import Transformer
from normscope.schema import PositiveInt, Strict
from normscope.studies.main.recipe import StreamProbe
from normscope.train import runtime
from normscope.train.trained import transformers


class Flags(Strict):
    """Measure the residual stream of trained models on validation text."""

    recipe: StreamProbe
    models: Path = Field(description="folder of the job that trained them")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    out: Path = Field(description="directory for stream.csv")
    threads: PositiveInt = 1


def stream(model: Transformer, batches: Sequence[Tensor]) -> list[dict[str, float | str | None]]:
    """A row a site and position: geometric mean of the norms, and log-gain to the site before."""
    final_norm = None if isinstance(model.final_norm, nn.Identity) else model.final_norm
    norms = stream_norms(model, list(model.blocks), final_norm, batches).double()
    geometric = norms.log().mean(1).exp()  # (sites, positions)
    gains = log_gain(norms).mean(1)
    return [
        {
            "site": site,
            "depth": depth,
            "position": position,
            "windows": norms.shape[1],
            "norm": float(geometric[depth, position]),
            "log_gain": float(gains[depth - 1, position]) if depth else None,
        }
        for depth, site in enumerate(site_names(len(model.blocks), final_norm is not None))
        for position in range(norms.shape[2])
    ]


def main() -> None:
    flags = parse(Flags)
    device = runtime.start("fp32", flags.threads, flags.recipe.device).device
    stack, models = transformers(flags.models)
    tokens, T = as_tensor(dataset.read(flags.data).val), stack.model.block_size
    start = spread(len(tokens), T, flags.recipe.windows)
    batches = tokens[start[:, None] + torch.arange(T)].to(device).split(EVAL_BATCH)
    rows = [
        {"seed": seed, **row}
        for seed, model in models.items()
        for row in stream(model.to(device), batches)
    ]
    write_csv(flags.out / "stream.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    report(main)
