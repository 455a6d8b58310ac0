"""Sizes and angles of the signals of a Transformer's blocks in one forward and backward pass."""

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.measure.hooks import passing
from normscope.nn.model import Branch

Row = dict[str, float]


def length(tensors: Sequence[Tensor]) -> float:
    """Euclidean norm of all entries of several tensors.

    The entries are first divided by the largest: without residual connections they are as small as
    1e-200, and their squares underflow.
    """
    flat = torch.cat([t.detach().reshape(-1) for t in tensors])
    largest = float(flat.abs().max())
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * float((flat / largest).norm())


def angle(x: Tensor, y: Tensor) -> float:
    """Mean angle in degrees between two vectors of a token, (..., d) each."""
    least = torch.finfo(x.dtype).tiny
    x, y = (v.detach() / v.detach().abs().amax(-1, keepdim=True).clamp_min(least) for v in (x, y))
    cosine = F.cosine_similarity(x, y, dim=-1).clamp(-1, 1)
    return float(torch.rad2deg(cosine.arccos()).mean())


def signals(loss: Callable[[], Tensor], blocks: Sequence[nn.Module]) -> tuple[list[Row], Tensor]:
    r"""One row per block of one forward and backward pass, and the inputs of the blocks.

    Row 0 describes the stream that enters the first block (the embedding), row l block l:

    - ``activation_rms`` of the stream that leaves it: the root of its mean square.
    - ``gradient``: the norm of dL/dx over the whole batch, x the block's input.
    - ``gradient_parameters``: the norm of dL/dtheta, theta the block's parameters.
    - ``angle_<branch>`` in degrees, mean over tokens, between the stream x that enters a branch
      and what the branch adds to it; in blocks of ``normscope.nn.model.Branch`` alone.

    Args:
        loss: runs the forward pass; its value is the mean loss over the tokens of a batch.
        blocks: in order; each maps a tensor to one of the same shape.

    Returns:
        The rows, and the inputs of the blocks stacked, (blocks, ...).
    """
    inside = {
        f"{i}.{name}": module
        for i, block in enumerate(blocks)
        for name, module in block.named_children()
        if isinstance(module, Branch)
    }
    ends = {f"{name}.end": module.after for name, module in inside.items()}
    with passing({f"{i}": block for i, block in enumerate(blocks)} | inside | ends) as seen:
        value = loss()
    streams = [seen[f"{i}"][0] for i in range(len(blocks))]
    parameters = [list(block.parameters()) for block in blocks]
    flat = itertools.chain.from_iterable(parameters)
    gradients = torch.autograd.grad(value, [*streams, *flat])
    parameter_gradients = iter(gradients[len(blocks) :])
    rows = [{"block": 0, "activation_rms": _rms(streams[0])}]
    for i in range(len(blocks)):
        block_gradients = [next(parameter_gradients) for _ in parameters[i]]
        row = {"block": i + 1, "activation_rms": _rms(seen[f"{i}"][1])}
        row |= {"gradient": length([gradients[i]])}
        if block_gradients:
            row["gradient_parameters"] = length(block_gradients)
        for name in inside:
            index, branch = name.split(".")
            if index == f"{i}":
                row[f"angle_{branch}"] = angle(seen[name][0], seen[f"{name}.end"][1])
        rows.append(row)
    return rows, torch.stack([x.detach() for x in streams])


def _rms(x: Tensor) -> float:
    return length([x]) / math.sqrt(x.numel())
