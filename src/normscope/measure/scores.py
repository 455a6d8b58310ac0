"""Attention scores of a Transformer: their size, and the share of the first position."""

import math

import torch
from torch import Tensor

from normscope.measure.hooks import passing
from normscope.nn.model import Attention, Transformer


def attentions(model: Transformer) -> dict[str, Attention]:
    """The attention of every block by its name, in order of depth."""
    return {name: m for name, m in model.named_modules() if isinstance(m, Attention)}


@torch.no_grad()
def scores(model: Transformer, tokens: Tensor) -> Tensor:
    """Scores before the softmax, (blocks, windows x heads, T, T); -inf where a key is not seen.

    Args:
        model: In evaluation mode.
        tokens: (windows, T).
    """
    sublayers = attentions(model)
    with passing(sublayers) as seen:
        model(tokens)
    parts = []
    for name, sublayer in sublayers.items():
        q, k, _ = sublayer.heads(seen[name][0])
        T = q.shape[1]
        parts.append(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]) + sublayer.mask[:T, :T])
    return torch.stack(parts)


def largest_score(values: Tensor) -> float:
    """The largest absolute value of ``scores``."""
    return float(values[values.isfinite()].abs().max())


def first_share(values: Tensor) -> float:
    """The mean attention weight of position 0, over later positions, heads and blocks.

    Args:
        values: From ``scores``, of attention with softmax.
    """
    return float(values.softmax(-1)[..., 1:, 0].mean())
