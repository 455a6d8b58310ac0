r"""A penalty on the size of activations, whose gradient is added on the way back.

To a loss that is a mean over tokens comes ``weight mean(sigma^2)``, with sigma^2 the variance of a
token over its channels. A norm's output does not change with the sigma of its input, so nothing
else holds that: as nothing but a z-loss holds the normalizer of logits (Chowdhery et al. 2022,
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


def penalized(x: Tensor, weight: float) -> Tensor:
    """x ``(..., d)``; on the way back ``weight`` times the penalty's gradient is added."""
    return _Penalized.apply(x, weight)
