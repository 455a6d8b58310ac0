"""The loss that a Transformer gains if one of its blocks is left out."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from normscope.nn.model import Transformer, cross_entropy


@contextmanager
def skipped(block: nn.Module) -> Iterator[None]:
    """Let a block return its input while the body runs."""
    handle = block.register_forward_hook(lambda _, args, output: args[0])
    try:
        yield
    finally:
        handle.remove()


@torch.no_grad()
def added_losses(model: Transformer, tokens: Tensor, targets: Tensor) -> list[float]:
    """The loss in nats without one block, minus the loss of the whole model, block by block.

    This is the test of Sun et al. 2025 (arXiv:2502.05795, section 2.2).

    Args:
        model: In evaluation mode.
        tokens, targets: (windows, T).
    """

    def loss() -> float:
        return float(cross_entropy(model(tokens), targets))

    whole, added = loss(), []
    for block in model.blocks:
        with skipped(block):
            added.append(loss() - whole)
    return added
