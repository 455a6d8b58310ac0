r"""LayerNorm and RMSNorm with surrogate backward passes.

With ``y = gain * z + bias``, ``z = (x - mu)/sigma``, ``sigma = sqrt(var + eps)`` and the gradient
at z, ``g = gain * dL/dy``, the exact backward pass (of Ba et al. 2016, arXiv:1607.06450, eq. 4, by
the chain rule) is

    exact             (g - <g> - z <g z>)/sigma

with <.> a mean over channels, and a surrogate leaves some of it out:

    center_scale      (g - <g>)/sigma            the radial part is left in
    projected          g - <g> - z <g z>         the scale is left out
    straight_through   g                         both, and the centering
    detached           g/sigma                   mean and radial part are left in

The last is the gradient with mu and sigma as constants: DetachNorm (Xu et al. 2019,
arXiv:1911.07013, section 3.1).

A dose of the first leaves a share s of the radial part in, ``(g - <g> - (1 - s) z <g z>)/sigma``,
from the exact pass at 0 to center_scale at 1.

RMSNorm does not center: mu = 0, sigma is the root mean square, and the term <g> is absent.
Gradients of gain and bias are always exact.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from normscope.nn.recipe import NormBackward

aten = torch.ops.aten


class _Surrogate(torch.autograd.Function):
    """LayerNorm or RMSNorm over the last axis; the backward pass is made of LayerNorm's kernel.

    Returns ``y``, and for the backward pass mean and reciprocal standard deviation.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        x: Tensor, gain: Tensor | None, bias: Tensor | None, *settings: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        eps, center, _, _ = settings
        if center:
            return torch.native_layer_norm(x, x.shape[-1:], gain, bias, eps)
        mean_square = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square() / x.shape[-1]
        rstd = (mean_square + eps).rsqrt()
        y = x * rstd
        y = y if gain is None else y * gain
        return y if bias is None else y + bias, torch.zeros_like(rstd), rstd

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, gain, bias, _, ctx.center, ctx.rule, ctx.share = inputs
        _, mean, rstd = output
        ctx.mark_non_differentiable(mean, rstd)
        ctx.save_for_backward(x, gain, bias, mean, rstd)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]: the decorator hides ctx
        ctx: Any, *grads: Tensor
    ) -> tuple[Tensor | None, ...]:
        dy = grads[0].contiguous()
        x, gain, bias, mean, rstd = ctx.saved_tensors
        shape, affine = x.shape[-1:], [gain is not None, bias is not None]
        dx, dgain, dbias = aten.native_layer_norm_backward(
            dy, x, shape, mean, rstd, gain, bias, [ctx.rule == "projected", *affine]
        )
        if ctx.rule in ("straight_through", "detached"):
            dx = dy if gain is None else dy * gain
            dx = dx * rstd if ctx.rule == "detached" else dx
        else:
            if ctx.rule == "center_scale":
                # scale z by this factor: the radial part is quadratic in z
                length = math.sqrt(1 - ctx.share)
                dx, _, _ = aten.native_layer_norm_backward(
                    dy, length * x, shape, length * mean, rstd, gain, bias, [True, False, False]
                )
            if not ctx.center:  # RMSNorm has no term <g>: undo the kernel's
                g = dy.mean(-1) if gain is None else torch.linalg.vecdot(dy, gain / gain.numel())
                dx += g.unsqueeze(-1) * rstd
            if ctx.rule == "projected":
                dx /= rstd
        return dx, dgain if affine[0] else None, dbias if affine[1] else None, *[None] * 4


def normalize(
    x: Tensor,
    affine: tuple[Tensor | None, Tensor | None],
    eps: float,
    *,
    center: bool,
    rule: NormBackward,
    share: float = 1.0,
) -> Tensor:
    """LayerNorm (centered) or RMSNorm of ``x (..., d)`` with a surrogate backward pass.

    Args:
        x: inputs.
        affine: gain and bias, each (d,) or None.
        eps: added to the variance or the mean square.
        center: LayerNorm.
        rule: which surrogate; ``exact`` is not one.
        share: fraction of the radial part that center_scale leaves in.
    """
    return _Surrogate.apply(x, *affine, eps, center, rule, share)[0]
