r"""A penalty on the size of activations, whose gradient is added in the backward pass.

``weight mean(sigma^2)`` is added to the loss, with sigma^2 the variance of a token over its
channels. The output of a norm does not depend on the sigma of its input, so that nothing else
bounds it, as nothing but a z-loss bounds the normalizer of the logits (Chowdhery et al. 2022,
arXiv:2204.02311, section 5).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Penalized(torch.autograd.Function):
    """Identity; backward adds the penalty's gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: float) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, ctx.weight = inputs
        ctx.save_for_backward(x)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]: the decorator hides ctx
        ctx: Any, *grads: Tensor
    ) -> tuple[Tensor | None, ...]:
        (x,) = ctx.saved_tensors
        return grads[0] + 2 * ctx.weight / x.numel() * (x - x.mean(-1, keepdim=True)), None


def add_penalty(x: Tensor, weight: float) -> Tensor:
    """x ``(..., d)``; the backward pass adds ``weight`` times the penalty's gradient."""
    return _Penalized.apply(x, weight)
