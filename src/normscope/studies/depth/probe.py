"""A Transformer at one moment, block by block."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from normscope.io import dataset
from normscope.measure.signals import Row, signals
from normscope.measure.spectrum import block_jacobian, jacobian_spectrum
from normscope.measure.windows import validation_windows
from normscope.nn.model import Transformer
from normscope.studies.depth.recipe import TOKENS, Place, Probe, Sizes
from normscope.studies.depth.tables import TABLES
from normscope.studies.stage import ProbeInputs
from normscope.train.outputs import log
from normscope.train.trained import load_verified


def probe(recipe: Place, inputs: ProbeInputs, device: torch.device) -> dict[str, pd.DataFrame]:
    """The models of one placement: table ``blocks``, one row per block of every model."""
    data = dataset.read(inputs.corpus)
    windows = validation_windows(data.val, recipe.sizes.block_size, recipe.windows)
    tokens, targets = (part.to(device) for part in windows)
    rows = []
    for one in recipe.probes:
        for state, seed, model in models(recipe.sizes, one, inputs.models, data.vocab_size):
            key = one.shape._asdict() | {"state": state, "seed": seed}
            measured = measure(model.to(device), tokens, targets, recipe.spectra)
            rows += [key | row for row in measured]
        log(f"{one.shape}: probed")
    return {"blocks": pd.DataFrame(rows, columns=TABLES["blocks"].names)}


def models(
    sizes: Sizes, probe: Probe, trained: Path, vocab_size: int
) -> Iterator[tuple[str, int, Transformer]]:
    """State, seed and model: at the start, then trained, except those that diverged."""
    shape = probe.shape
    for seed in probe.seeds:
        torch.manual_seed(seed)
        start = Transformer(sizes.model(shape), probe.norm, shape.placement, vocab_size)
        yield "start", seed, start
    for name in probe.trained:
        for seed, end in load_verified(trained / name)[1].items():
            yield "trained", seed, end


def measure(model: Transformer, tokens: Tensor, targets: Tensor, spectra: int) -> list[Row]:
    """One row per block and one for the embedding: ``signals``, and singular values of some blocks.

    The model is in training mode, in which the gradients occur: BatchNorm uses the statistics of
    this batch. It is in float64, in which gradients that vanish still differ from zero.

    Args:
        model: without dropout; running statistics of its norms change.
        tokens, targets: (windows, T).
        spectra: how many blocks, spread evenly from the second to the last, get the ``spectrum`` of
            their Jacobian over the first ``TOKENS`` tokens.
    """
    model = model.double().train()
    blocks = list(model.blocks)

    def loss() -> Tensor:
        return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())

    rows, streams = signals(loss, blocks)
    last = len(blocks) - 1
    for i in np.unique(np.linspace(min(1, last), last, spectra).round().astype(int)):
        x = streams[i][:1, :TOKENS]  # a causal block is the same on the first tokens alone
        rows[i + 1] |= jacobian_spectrum(block_jacobian(blocks[i], x), x.shape[1])
    return rows
