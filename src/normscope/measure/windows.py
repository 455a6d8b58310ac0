"""Windows of a token stream, and the loss over all of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from normscope.io.dataset import DatasetError
from normscope.nn.model import cross_entropy

EVAL_BATCH = 24  # windows; the fastest size at nanoGPT's CPU config on one core


def draw(
    tokens: Tensor, block_size: int, batch_size: int, g: torch.Generator
) -> tuple[Tensor, Tensor]:
    """A random batch of inputs and targets, each (batch_size, block_size), as nanoGPT draws it."""
    start = torch.randint(len(tokens) - block_size, (batch_size, 1), generator=g)
    window = tokens[start + torch.arange(block_size + 1)]
    return window[:, :-1].contiguous(), window[:, 1:].contiguous()


def spread(tokens: int, block_size: int, windows: int) -> Tensor:
    """Where windows of ``block_size`` begin, spread evenly over ``tokens``: (windows,) or fewer.

    No more windows than fit side by side.
    """
    if tokens < block_size:
        raise DatasetError(f"the split has {tokens} tokens, fewer than a window of {block_size}")
    n = min(windows, tokens // block_size)
    return torch.linspace(0, tokens - block_size, n, dtype=torch.float64).long()


def validation_windows(val: np.ndarray, T: int, windows: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets, each (windows, T), spread evenly over the validation tokens."""
    at = spread(len(val) - 1, T, windows)
    window = as_tensor(val)[at[:, None] + torch.arange(T + 1)]
    return window[:, :-1], window[:, 1:]


def cover(tokens: Tensor, block_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and targets in batches; every token but the first is a target exactly once.

    Consecutive windows of ``block_size``; the last one may be shorter.
    """
    whole = (len(tokens) - 1) // block_size * block_size
    x, y = tokens[:whole].view(-1, block_size), tokens[1 : whole + 1].view(-1, block_size)
    yield from zip(x.split(EVAL_BATCH), y.split(EVAL_BATCH), strict=True)
    if whole < len(tokens) - 1:
        yield tokens[None, whole:-1], tokens[None, whole + 1 :]


def as_tensor(tokens: np.ndarray) -> Tensor:
    """uint16 tokens as int64, which indexing needs."""
    return torch.from_numpy(tokens.astype(np.int64))


@dataclass(frozen=True)
class SplitLoss:
    """Loss over a whole split, in nats per token.

    ``window_sd``, where there are windows, is the standard deviation of the mean losses of the
    whole ones: a mean over k windows drawn at random scatters by ``window_sd / sqrt(k)``.
    """

    mean: float
    window_sd: float | None = None


@torch.inference_mode()
def split_loss(model: nn.Module, tokens: Tensor, block_size: int) -> SplitLoss:
    """Cross-entropy over every token of a split but the first, in evaluation mode."""
    was_training = model.training
    model.eval()
    sums = [
        cross_entropy(model(x), y, "none").view(y.shape).double().sum(1)
        for x, y in cover(tokens, block_size)
    ]
    model.train(was_training)
    per_window = torch.cat(sums)
    whole = per_window[: (len(tokens) - 1) // block_size] / block_size
    return SplitLoss(float(per_window.sum() / (len(tokens) - 1)), float(whole.std(correction=0)))
