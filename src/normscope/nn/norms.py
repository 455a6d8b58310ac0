"""Normalization layers, built from the factors of ``normscope.nn.recipe.Norm``.

Shapes: every layer maps ``(..., d)`` to ``(..., d)``. In float64 the layers equal torch's
``LayerNorm``, ``RMSNorm`` and ``BatchNorm1d``, which the tests check.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.nn import surrogates
from normscope.nn.custom import CustomNorm
from normscope.nn.recipe import Model, Norm, NormBackward, NormPlace

POINTWISE = {"tanh": torch.tanh, "erf": torch.erf}


class Affine(nn.Module):
    """``gain * x + bias`` per channel, each part optional.

    Args:
        d: channels.
        gain: learn a gain, started at 1.
        bias: learn a bias, started at 0.
        log_rate: see ``normscope.nn.recipe.Norm``.
    """

    gain: Tensor | None
    bias: Tensor | None

    def __init__(self, d: int, gain: bool, bias: bool, log_rate: float | None = None) -> None:
        super().__init__()
        self.log_rate = log_rate
        start = torch.ones(d) if log_rate is None else torch.zeros(d)
        self.register_parameter("gain", nn.Parameter(start) if gain else None)
        self.register_parameter("bias", nn.Parameter(torch.zeros(d)) if bias else None)

    def size(self, p: Tensor) -> Tensor:
        """The gain or radius of a parameter: the parameter, or ``exp(log_rate * p)``."""
        return p if self.log_rate is None else (self.log_rate * p).exp()

    def forward(self, x: Tensor) -> Tensor:
        if self.gain is not None:
            x = x * self.size(self.gain)
        return x if self.bias is None else x + self.bias


class TokenNorm(Affine):
    r"""Project each token on a sphere: LayerNorm, RMSNorm, unit L2, ScaleNorm, and between.

    With ``u = x - mean(x)`` if centered, else ``u = x``::

        radius sqrt(d):  y = u / sqrt(mean(u^2) + eps)     LayerNorm (Ba 2016, eq. 4),
                                                           RMSNorm (Zhang & Sennrich 2019, eq. 4)
        radius 1:        y = u / max(||u||, eps)           unit L2
        radius learned:  y = g u / max(||u||, eps)         ScaleNorm (Nguyen & Salazar 2019, eq. 3),
                                                           g started at sqrt(d), or at 1
                                                           where it has a log_rate

    then ``gain * y + bias``. The norm of ``y`` is the radius wherever eps is negligible.
    ``norm_backward`` may name a surrogate of the backward pass (``normscope.nn.surrogates``) where
    the radius is sqrt(d), and ``radial_share`` a dose of it.
    """

    def __init__(
        self, d: int, norm: Norm, norm_backward: NormBackward = "exact", radial_share: float = 1.0
    ) -> None:
        super().__init__(d, norm.gain, norm.bias, norm.log_rate)
        self.d, self.eps, self.center, self.radius = d, norm.eps, norm.center, norm.radius
        self.norm_backward: NormBackward = norm_backward
        self.radial_share = radial_share
        if norm.radius == "learned":
            self.g = nn.Parameter(torch.tensor(0.0 if norm.log_rate else math.sqrt(d)))

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_backward != "exact":
            return surrogates.normalize(
                x,
                (self.gain, self.bias),
                self.eps,
                center=self.center,
                rule=self.norm_backward,
                share=self.radial_share,
            )
        if self.radius == "sqrt(d)":
            if self.center and self.gain is None and self.bias is not None:
                # apart, as torch 2.13 has no second derivative of layer_norm with a bias alone
                return F.layer_norm(x, (self.d,), eps=self.eps) + self.bias
            if self.center:
                return F.layer_norm(x, (self.d,), self.gain, self.bias, self.eps)
            y = F.rms_norm(x, (self.d,), self.gain, self.eps)
            return y if self.bias is None else y + self.bias
        u = x - x.mean(-1, keepdim=True) if self.center else x
        y = F.normalize(u, dim=-1, eps=self.eps)
        return super().forward(y * self.size(self.g) if self.radius == "learned" else y)


class BatchNorm(nn.BatchNorm1d):
    """BatchNorm over all tokens of the batch, per channel (Ioffe & Szegedy 2015, algorithm 1).

    Training uses the batch's biased variance, evaluation the running averages (momentum 0.1).
    In a causal model the training statistics include future positions: what a token sees then
    depends on its successors. That is a property of the method, not of this implementation.
    """

    def __init__(self, d: int, norm: Norm) -> None:
        super().__init__(d, eps=norm.eps, affine=norm.gain)
        self.d = d

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.reshape(-1, input.shape[-1])).view(input.shape)


class PointwiseNorm(Affine):
    r"""``gain * f(alpha x + s) + bias``, without a statistic.

    ``f = tanh`` is DyT (Zhu et al. 2025, eq. 1; it has no shift s), ``f = erf`` is Derf (Chen et
    al. 2025). ``alpha`` starts where the recipe says and ``s`` at 0; both are learned scalars.
    """

    def __init__(self, d: int, norm: Norm) -> None:
        super().__init__(d, norm.gain, norm.bias)
        assert norm.elementwise is not None
        self.d, self.f = d, POINTWISE[norm.elementwise]
        self.alpha = nn.Parameter(torch.tensor(norm.alpha))
        self.shift = nn.Parameter(torch.tensor(0.0)) if norm.elementwise == "erf" else None

    def forward(self, x: Tensor) -> Tensor:
        x = self.alpha * x
        return super().forward(self.f(x if self.shift is None else x + self.shift))


class Scale(nn.Module):
    """A learned factor, started at ``sqrt(d)``."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(math.sqrt(d)))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


def build(
    norm: Norm, d: int, norm_backward: NormBackward = "exact", radial_share: float = 1.0
) -> nn.Module:
    """The layer of a norm for ``d`` channels; input and output ``(..., d)``.

    Raises:
        ValueError: the norm has no surrogate backward pass.
    """
    if norm_backward != "exact" and not norm.has_surrogates:
        raise ValueError(f"norm_backward {norm_backward} is defined for LayerNorm and RMSNorm")
    if norm.custom:
        return CustomNorm(d, norm.custom)
    if norm.statistic == "token":
        return TokenNorm(d, norm, norm_backward, radial_share)
    if norm.statistic == "batch":
        return BatchNorm(d, norm)
    return nn.Identity() if norm.elementwise is None else PointwiseNorm(d, norm)


def build_at(place: NormPlace, norm: Norm, d: int, model: Model) -> nn.Module:
    """The layer of a norm at a place of a model, with the alpha and backward pass of this place."""
    part = place if place in ("embedding", "final") else "blocks"
    rule = model.norm_backward if model.surrogates_in in ("all", part) else "exact"
    return build(norm.at(place), d, rule, model.radial_share)
