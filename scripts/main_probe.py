"""Measure trained models: norms and gains of their residual stream, and gain against entropy."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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
from normscope.statistics.inference import correlation
from normscope.studies.main.recipe import StreamProbe
from normscope.train import runtime
from normscope.train.trained import transformers

LEVEL = 0.95  # of intervals of r, which are not kept


class Flags(Strict):
    """Measure the residual stream of trained models on validation text."""

    recipe: StreamProbe
    models: Path = Field(description="folder of the job that trained them")
    data: Path = Field(description="directory with train.bin, val.bin, meta.pkl")
    out: Path = Field(description="directory for stream.csv, laws.csv")
    threads: PositiveInt = 1


class Passed(NamedTuple):
    """What windows were to a model.

    Args:
        norms: of the stream, (sites, windows, positions).
        entropy: of the prediction at the last position, in nats, (windows,).
    """

    norms: Tensor
    entropy: Tensor


def passed(model: Transformer, batches: Sequence[Tensor]) -> Passed:
    """One pass of all windows; batches of (windows, positions)."""
    entropies = []

    def forward(tokens: Tensor) -> None:
        p = model(tokens)[:, -1].double().softmax(-1)
        entropies.append(torch.special.entr(p).sum(-1))

    norms = stream_norms(forward, list(model.blocks), final_norm(model), batches).double()
    return Passed(norms, torch.cat(entropies))


def final_norm(model: Transformer) -> nn.Module | None:
    return None if isinstance(model.final_norm, nn.Identity) else model.final_norm


def stream(model: Transformer, norms: Tensor) -> list[dict[str, float | str | None]]:
    """A row a site and position: geometric mean of the norms, and log-gain to the site before."""
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
        for depth, site in enumerate(site_names(len(model.blocks), final_norm(model) is not None))
        for position in range(norms.shape[2])
    ]


def laws(model: Transformer, windows: Passed) -> dict[str, float]:
    """Pearson's r over windows of the entropy with the last block's gain, and with abs(gain - 1).

    Both at the last position, where a model has seen most.
    """
    last = len(model.blocks)
    gain = log_gain(windows.norms)[last - 1, :, -1].exp()
    columns = {"r_entropy_gain": gain, "r_entropy_deviation": (gain - 1).abs()}
    entropy = windows.entropy.tolist()
    return {name: correlation(entropy, x.tolist(), LEVEL).r for name, x in columns.items()}


def main() -> None:
    flags = parse(Flags)
    device = runtime.start("fp32", flags.threads, flags.recipe.device).device
    stack, models = transformers(flags.models)
    tokens, T = as_tensor(dataset.read(flags.data).val), stack.model.block_size
    start = spread(len(tokens), T, flags.recipe.windows)
    batches = tokens[start[:, None] + torch.arange(T)].to(device).split(EVAL_BATCH)
    rows, of_models = [], []
    for seed, model in models.items():
        windows = passed(model.to(device), batches)
        rows += [{"seed": seed, **row} for row in stream(model, windows.norms)]
        of_models.append({"seed": seed, "windows": len(windows.entropy), **laws(model, windows)})
    write_csv(flags.out / "stream.csv", pd.DataFrame(rows))
    write_csv(flags.out / "laws.csv", pd.DataFrame(of_models))


if __name__ == "__main__":
    report(main)
