r"""A penalty on the size of activations, whose gradient is added on the way back.

With ``sigma = sqrt(var(x) + eps)`` over the channels of a token, a loss that is the mean over tokens
gets ``weight mean((ln sigma)^2)``. A norm's output does not change with sigma, so that nothing else
holds it: as the z-loss (Chowdhery et al. 2022, arXiv:2204.02311, section 5) holds the logits'
normalizer.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

EPS = 1e-5  # of a norm


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
        u = x - x.mean(-1, keepdim=True)
        variance = u.square().mean(-1, keepdim=True) + EPS
        # of (ln sigma)^2 = (ln variance)^2 / 4, over as many numbers as x has
        return grads[0] + ctx.weight / x.numel() * variance.log() / variance * u, None


def penalized(x: Tensor, weight: float) -> Tensor:
    """x ``(..., d)``; on the way back ``weight`` times the penalty's gradient is added."""
    return _Penalized.apply(x, weight)
