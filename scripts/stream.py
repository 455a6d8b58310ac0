"""Rule stream: norms and log-gains of the residual stream of one trained model, per position."""

import json
from pathlib import Path

import pandas as pd
import safetensors
import safetensors.torch
import torch
from pydantic import Field
from pydantic_settings import CliApp

from normscope import dataset, runtime
from normscope.errors import Explained, report
from normscope.model import Transformer
from normscope.recipe import Model, Norm, PositiveInt, Strict
from normscope.residual import log_gain, site_names, stream_norms
from normscope.tables import write_csv
from normscope.windows import EVAL_BATCH, as_tensor


class Flags(Strict):
    """Measure the residual stream of a trained model on validation text."""

    model: Path = Field(description="model.safetensors, with config.json beside it")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    windows: PositiveInt = Field(description="windows of block_size tokens, spread evenly")
    out: Path = Field(description="CSV to write")
    threads: PositiveInt = 1


def load(weights: Path) -> Transformer:
    config = json.loads(weights.with_name("config.json").read_text())
    norm, sizes = Norm(**config["norm"]), Model(**config["model"])
    model = Transformer(sizes, norm, config["placement"], config["vocab_size"])
    try:
        model.load_state_dict(safetensors.torch.load(weights.read_bytes()))
    except (safetensors.SafetensorError, RuntimeError) as e:
        raise Explained(f"{weights} does not hold the model of its config.json: {e}") from e
    return model.eval()


def main() -> None:
    flags = CliApp.run(Flags)
    runtime.start("fp32", flags.threads)
    model = load(flags.model)
    tokens, T = as_tensor(dataset.read(flags.data).val), model.block_size
    if len(tokens) < T:
        raise Explained(f"the val split has {len(tokens)} tokens, fewer than a window of {T}")
    windows = min(flags.windows, len(tokens) // T)
    start = torch.linspace(0, len(tokens) - T, windows, dtype=torch.float64).long()
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
            "windows": windows,
            "norm": float(geometric[depth, position]),
            "log_gain": float(gains[depth - 1, position]) if depth else None,
        }
        for depth, site in enumerate(site_names(len(model.blocks), final_norm is not None))
        for position in range(T)
    ]
    write_csv(flags.out, pd.DataFrame(rows))


if __name__ == "__main__":
    report(main)
