"""A Transformer at one moment, block by block."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from normscope.measure.block_jacobian import block_jacobian, spectrum
from normscope.measure.signals import Row, signals
from normscope.nn.model import Transformer
from normscope.studies.depth.measures import TOKENS


@torch.no_grad()
def flatten(model: Transformer) -> None:
    """Undo the shrinking of the branches' last matrices with depth, as ``gpt2_flat`` starts."""
    for name, parameter in model.named_parameters():
        if name.endswith("proj.weight"):
            parameter.mul_(math.sqrt(2 * len(model.blocks)))


def probed(model: Transformer, tokens: Tensor, targets: Tensor, spectra: int) -> list[Row]:
    """A row per block, and of the embedding: see ``signals``; with singular values of some blocks.

    In training mode, as the gradients that it is about: BatchNorm takes the statistics of this
    batch. In float64, in which gradients that vanish can still be told from zero.

    Args:
        model: without dropout; its running statistics, if it has them, change.
        tokens, targets: (windows, T).
        spectra: blocks, spread evenly up to the last, with the ``spectrum`` of their Jacobian over
            the first ``TOKENS`` tokens.
    """
    model = model.double().train()
    blocks = list(model.blocks)

    def loss() -> Tensor:
        return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())

    rows, streams = signals(loss, blocks)
    for i in np.unique(np.linspace(0, len(blocks) - 1, spectra + 1).round().astype(int)[1:]):
        x = streams[i][:1, :TOKENS]  # a causal block is the same on the first tokens alone
        rows[i + 1] |= spectrum(block_jacobian(blocks[i], x), x.shape[1])
    return rows
