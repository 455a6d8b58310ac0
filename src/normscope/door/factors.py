"""A norm taken apart into its factors."""

import math
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from normscope.door.recognized import channels, recognized
from normscope.errors import Explained, suggest
from normscope.measure.decomposition import standardize
from normscope.nn.arms import ARMS
from normscope.nn.norms import TokenNorm, build

COLUMNS = "statistic center radius gain bias elementwise eps".split()


class Factors(NamedTuple):
    """A norm's output is ``gain * radius * projected + bias``.

    Args:
        centered: x, less its mean over channels where the norm centers, (..., d).
        projected: the same on the unit sphere, or inside of it by as much as eps counts, (..., d).
        radius: of the sphere, a scalar.
        gain: (d,), or as a layer over several dimensions has it; 1 where the norm has none.
        bias: the same; 0 where the norm has none.
    """

    centered: Tensor
    projected: Tensor
    radius: Tensor
    gain: Tensor
    bias: Tensor

    @property
    def output(self) -> Tensor:
        """Of the norm, (..., d)."""
        return self.gain * self.radius * self.projected + self.bias


def arms() -> pd.DataFrame:
    """The arms of the registry by their names: label, source, and the factors of their norms."""
    rows = {
        name: {"label": arm.label, "source": arm.source, **arm.norm.model_dump(include={*COLUMNS})}
        for name, arm in ARMS.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")[["label", "source", *COLUMNS]].rename_axis(
        "arm"
    )


@torch.no_grad()
def factors(norm: str | nn.Module, x: Tensor) -> Factors:
    """What a norm does to x, part by part: ``gain * radius * project(center(x)) + bias``.

    ``project(u) = u / max(||u||, eps)`` at radius 1 or learned; at radius ``sqrt(d)`` it is
    ``u / sqrt(||u||^2 + d eps)``, which makes LayerNorm (Ba et al. 2016, eq. 4) and
    RMSNorm (Zhang & Sennrich 2019, eq. 4).

    Args:
        norm: an arm by its name, as it starts; or a layer: of a loaded model, of torch, of
            transformers.
        x: (..., d), of floating point.

    Raises:
        Explained: an unknown arm, a norm that does not look at one token at a time, or an x that
            is no vectors.
    """
    if x.dim() == 0 or not x.is_floating_point():
        shape = tuple(x.shape)
        raise Explained(f"x is {x.dtype} of shape {shape}: give floating-point vectors, (..., d)")
    layer = _layer(norm, x)
    shape = x.shape[-1:] if isinstance(norm, str) else channels(norm, x)
    d = math.prod(shape)
    at = standardize(layer, x.reshape(-1, d).to("cpu", torch.float64))
    sizes = {"sqrt(d)": math.sqrt(d), "1": 1.0}
    radius = layer.size(layer.g) if layer.radius == "learned" else sizes[layer.radius]
    gain = torch.ones(d) if layer.gain is None else layer.size(layer.gain)
    bias = torch.zeros(d) if layer.bias is None else layer.bias
    parts = (
        (at.z * at.sigma).reshape(x.shape),
        (at.z / math.sqrt(d)).reshape(x.shape),
        torch.as_tensor(radius, dtype=torch.float64),
        gain.reshape(shape),
        bias.reshape(shape),
    )
    return Factors(*(part.detach().to(x) for part in parts))


def _layer(norm: str | nn.Module, x: Tensor) -> TokenNorm:
    """The norm as a layer in float64."""
    if isinstance(norm, nn.Module):
        d = math.prod(channels(norm, x))
        return recognized(norm, x.reshape(-1, d), norm(x).reshape(-1, d))
    if norm not in ARMS:
        raise Explained(f"unknown arm {norm!r}; {suggest(norm, ARMS)}")
    layer = build(ARMS[norm].norm, x.shape[-1])
    if not isinstance(layer, TokenNorm):
        raise Explained(
            f"arm {norm} does not put each token on a sphere: it has no such factors; "
            "normscope.arms() names those with statistic token"
        )
    return layer.double()
