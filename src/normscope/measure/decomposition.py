r"""The backward pass of a norm over one token in closed form, and the energies of its terms.

A norm with token statistics is ``y = gain * r * z / sqrt(d) + bias`` with radius r (LayerNorm and
RMSNorm: ``sqrt(d)``), ``z = u / sigma``, ``u = x - <x>`` if centered, else ``u = x``; <.> is a mean
over the d channels. With ``g = gain * r / sqrt(d) * dL/dy``, the gradient at z, the exact pass is

    dL/dx = (g - <g> - z <g z>) / sigma

without the term ``<g>`` if not centered. It removes two directions of g, that of 1 and that of z.
Their shares of ``||g||^2`` are ``r_mean`` and ``r_radial``; ``r_tangent`` is the rest. The three
add up to 1 in every token. A g without preferred direction has ``r_mean = r_radial = 1/d``.

eps keeps ``<z^2>`` at ``1 - leak``, ``leak = eps / sigma^2``: that much of the radial part passes,
so that scaling removes ``(1 - leak^2) r_radial`` of the energy (see ``energies``).
With ``t = r_tangent``, ``s = r_radial`` and ``m = r_mean``, token by token:

    cos(straight_through, exact) = (t + leak s) / sqrt(t + leak^2 s)
    cos(center_scale, exact)     = (t + leak s) / sqrt((1 - m) (t + leak^2 s))

which is ``sqrt(1 - m - s)`` and ``sqrt((1 - m - s) / (1 - m))`` where eps is negligible.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from normscope.measure.names import SHARES, SURROGATES
from normscope.nn.norms import TokenNorm
from normscope.nn.recipe import NormBackward

Parts = Callable[[Tensor, "StandardTokens"], tuple[Tensor, Tensor, Tensor, Tensor]]
FLOOR = 1e-12  # |g|^2 of a token over the batch's mean; below it a token has no direction
PUBLISHED_EPS, PUBLISHED_FLOOR = 1e-5, 1e-12  # written into the published script


@dataclass(frozen=True)
class StandardTokens:
    """The standardized input of a norm: z ``(tokens, d)`` and sigma ``(tokens, 1)``."""

    z: Tensor
    sigma: Tensor
    center: bool


def standardize(layer: TokenNorm, x: Tensor) -> StandardTokens:
    """z and sigma of the tokens x ``(tokens, d)``.

    At radius 1 or learned a token shorter than eps is divided by eps alone, whose derivative has no
    radial term. For such tokens alone the exact pass differs from the one here.
    """
    u = x - x.mean(-1, keepdim=True) if layer.center else x
    if layer.radius == "sqrt(d)":
        sigma = (u.square().mean(-1, keepdim=True) + layer.eps).sqrt()
    else:  # u / max(||u||, eps), times the radius
        sigma = u.norm(dim=-1, keepdim=True).clamp_min(layer.eps) / math.sqrt(x.shape[-1])
    return StandardTokens(u / sigma, sigma, layer.center)


def gradient_at_z(layer: TokenNorm, dy: Tensor, *, gain: bool = True) -> Tensor:
    """``gain * r / sqrt(d) * dy``, of the tokens dy ``(tokens, d)``; or without the gain."""
    g = dy * layer.size(layer.gain).detach() if gain and layer.gain is not None else dy
    if layer.radius == "sqrt(d)":
        return g
    radius = layer.size(layer.g).detach() if layer.radius == "learned" else 1.0
    return g * radius / math.sqrt(dy.shape[-1])


def _mean_part(g: Tensor, center: bool) -> Tensor:
    return g.mean(-1, keepdim=True) * (1.0 if center else 0.0)


def backward(rule: NormBackward, g: Tensor, at: StandardTokens) -> Tensor:
    """What a backward pass hands back for the gradient g at z, (tokens, d).

    The surrogates are those of ``normscope.nn.surrogates``.
    """
    if rule == "straight_through":
        return g
    if rule == "detached":
        return g / at.sigma
    centered = g - _mean_part(g, at.center)
    if rule == "center_scale":
        return centered / at.sigma
    projected = centered - at.z * (g * at.z).mean(-1, keepdim=True)
    return projected if rule == "projected" else projected / at.sigma


def shares(g: Tensor, at: StandardTokens) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``||g||^2`` and the energies of its mean, radial and tangent parts, each ``(tokens,)``."""
    mean = _mean_part(g, at.center).expand_as(g)
    length = at.z.norm(dim=-1, keepdim=True)
    direction = at.z / length.clamp_min(torch.finfo(g.dtype).tiny)  # a constant token has none
    radial = direction * (g * direction).sum(-1, keepdim=True)
    tangent = g - mean - radial
    total, *parts = (v.square().sum(-1) for v in (g, mean, radial, tangent))
    return total, parts[0], parts[1], parts[2]


def energies(g: Tensor, at: StandardTokens) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``||g||^2``, and what of it centering removes, scaling removes, and passes, ``(tokens,)``.

    Where eps is negligible they are the mean, radial and tangent parts of ``shares``.
    """
    total, mean, radial, tangent = shares(g, at)
    leaked = (1 - at.z.square().mean(-1)).square() * radial
    return total, mean, radial - leaked, tangent + leaked


def decompose(g: Tensor, at: StandardTokens, parts_of: Parts = shares) -> dict[str, float]:
    """Shares, sigma, and a comparison of each surrogate with the exact pass, over tokens.

    ``r_mean``, ``r_radial``, ``r_tangent`` are means over tokens of a token's share; with suffix
    ``_of_batch`` they are ratios of batch means, in which tokens count by their energy. ``cos_*``
    is the mean over tokens of the cosine with the exact pass, ``error_*`` the distance from it
    relative to its norm, over the batch: a cosine is blind to a wrong length. Tokens whose
    ``||g||^2`` is below 1e-12 of the batch's mean, or whose exact gradient is zero, have no
    direction and count only in sums.

    Args:
        g: gradient at z, (tokens, d).
        at: the tokens to which g belongs.
        parts_of: ``shares``, or ``energies`` for the shares of what is removed and what passes.
    """
    total, *parts = parts_of(g, at)
    exact = backward("exact", g, at)
    has_direction = (total > FLOOR * total.mean()) & exact.any(-1)
    row: dict[str, float] = {}
    for name, part in zip(SHARES, parts, strict=True):
        row[name] = float((part[has_direction] / total[has_direction]).mean())
        row[f"{name}_of_batch"] = float(part.mean() / total.mean())
    row["sigma_mean"] = float(at.sigma.mean())
    row["sigma_std"] = float(at.sigma.std())
    for rule in SURROGATES:
        surrogate = backward(rule, g, at)
        cosine = F.cosine_similarity(surrogate, exact, dim=-1, eps=0)[has_direction]
        row[f"cos_{rule}"] = float(cosine.mean())
        row[f"error_{rule}"] = relative_error(surrogate, exact)
        if rule == "center_scale":
            gaps = (cosine - cosine_by_identity(g, at)[has_direction]).abs()
            row["error_identity"] = float(gaps.max()) if len(gaps) else math.nan
    return row


def cosine_by_identity(g: Tensor, at: StandardTokens) -> Tensor:
    """cos(center_scale, exact) of each token from its shares; see the module's docstring."""
    total, mean, radial, tangent = shares(g, at)
    leak = 1 - at.z.square().mean(-1)
    along, length = tangent + leak * radial, (tangent + leak.square() * radial).sqrt()
    return along / (length * (total - mean).sqrt())


def relative_error(a: Tensor, b: Tensor) -> float:
    """``||a - b|| / ||b||``; NaN where b is zero."""
    return float((a - b).norm() / b.norm())


def published_quantities(x: Tensor, dy: Tensor) -> dict[str, float]:
    """The quantities that the published script reports for a LayerNorm, computed as it does.

    The gain is left out of g, eps and the floor are its constants, r is a ratio of batch means, and
    a cosine is a mean over tokens.

    Args:
        x: inputs of the norm, (tokens, d).
        dy: gradients at its output, (tokens, d).
    """
    u = x - x.mean(-1, keepdim=True)
    sigma = (u.square().mean(-1, keepdim=True) + PUBLISHED_EPS).sqrt()
    at = StandardTokens(u / sigma, sigma, center=True)
    energy = dy.square().sum(-1).mean() + PUBLISHED_FLOOR
    mean = dy.mean(-1, keepdim=True).expand_as(dy)
    radial = at.z * (dy * at.z).mean(-1, keepdim=True)
    exact = backward("exact", dy, at)
    row = {
        "r_mean": float(mean.square().sum(-1).mean() / energy),
        "r_radial": float(radial.square().sum(-1).mean() / energy),
        "sigma_mean": float(sigma.mean()),
        "sigma_std": float(sigma.std()),
    }
    for rule in ("center_scale", "straight_through"):
        cosine = F.cosine_similarity(backward(rule, dy, at), exact, dim=-1)
        row[f"cos_{rule}"] = float(cosine.mean())
    return row
