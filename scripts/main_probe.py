"""Measure one trained model: norms and log-gains of its residual stream, per position."""

from pathlib import Path

import pandas as pd
import torch
from pydantic import Field

from normscope.command import parse
from normscope.errors import report
from normscope.io import dataset
from normscope.io.csvfile import write_csv
from normscope.measure.residual import log_gain, site_names, stream_norms
from normscope.measure.windows import EVAL_BATCH, as_tensor, spread
from normscope.schema import PositiveInt, Strict
from normscope.studies.main.recipe import StreamProbe
from normscope.train import runtime
from normscope.train.trained import transformer


class Flags(Strict):
    """Measure the residual stream of a trained model on validation text."""

    recipe: StreamProbe
    model: Path = Field(description="model.safetensors, with config.json beside it")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    out: Path = Field(description="directory for stream.csv")
    threads: PositiveInt = 1


def main() -> None:
    flags = parse(Flags)
    runtime.start("fp32", flags.threads)
    _, model = transformer(flags.model)
    tokens, T = as_tensor(dataset.read(flags.data).val), model.block_size
    start = spread(len(tokens), T, flags.recipe.windows)
    batches = tokens[start[:, None] + torch.arange(T)].split(EVAL_BATCH)
    final_norm = None if isinstance(model.final_norm, torch.nn.Identity) else model.final_norm
    norms = stream_norms(model, list(model.blocks), final_norm, batches).double()
    geometric = norms.log().mean(1).exp()  # (sites, positions)
    gains = log_gain(norms).mean(1)
    rows = [
        {
            "site": site,
            "depth": depth,
            "position": position,
            "windows": len(start),
            "norm": float(geometric[depth, position]),
            "log_gain": float(gains[depth - 1, position]) if depth else None,
        }
        for depth, site in enumerate(site_names(len(model.blocks), final_norm is not None))
        for position in range(T)
    ]
    write_csv(flags.out / "stream.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    report(main)
