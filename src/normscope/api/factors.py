"""Factor a norm into centering, projection, radius, gain and bias."""

import math
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from normscope.api.arguments import public
from normscope.errors import Explained, suggest
from normscope.measure.decomposition import standardize
from normscope.measure.recognition import is_transformed, recognize, run
from normscope.nn.arms import ARMS
from normscope.nn.norms import TokenNorm, build

TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
COLUMNS = "statistic center radius gain bias elementwise eps".split()


class Factors(NamedTuple):
    """The factors of a norm, whose output is ``gain * radius * projected + bias``.

    Args:
        centered: x, minus its mean over channels if the norm centers, (..., d).
        projected: ``centered`` divided by its length, (..., d); shorter than 1 because of eps.
        radius: of the sphere, a scalar.
        gain: (d,); 1 if the norm has no gain.
        bias: (d,); 0 if the norm has no bias.
    """

    centered: Tensor
    projected: Tensor
    radius: Tensor
    gain: Tensor
    bias: Tensor

    @property
    def output(self) -> Tensor:
        """The output of the norm, (..., d)."""
        return self.gain * self.radius * self.projected + self.bias


def arms() -> pd.DataFrame:
    """List the arms of the registry, one row per arm, indexed by name.

    Columns: label, source (the paper), and the factors of the norm: statistic, center, radius,
    gain, bias, elementwise and eps.
    """
    rows = {
        name: {"label": arm.label, "source": arm.source, **arm.norm.model_dump(include={*COLUMNS})}
        for name, arm in ARMS.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")[["label", "source", *COLUMNS]].rename_axis(
        "arm"
    )


@public
@torch.no_grad()
def factors(norm: str | nn.Module, x: Tensor) -> Factors:
    """Factor the output of a norm as ``gain * radius * project(center(x)) + bias``.

    With radius ``sqrt(d)``, ``project(u) = u / sqrt(||u||^2 + d eps)``, which gives LayerNorm
    (Ba et al. 2016, eq. 4) and RMSNorm (Zhang & Sennrich 2019, eq. 4). With radius 1 or a learned
    radius, ``project(u) = u / max(||u||, eps)``.

    The layer and the random number generators are not changed: a copy of the layer computes the
    output, without the hooks that are registered on it.

    Args:
        norm: the name of an arm, for its norm at initialization; or a layer of a loaded model, of
            torch or of transformers.
        x: finite vectors, (..., d), in float64, float32, bfloat16 or float16.

    Returns:
        Factors: with the type and the device of x.

    Raises:
        Explained: the arm is unknown, the norm is not one of each token, or it does not accept x.
    """
    _check_vectors(x)
    d = x.shape[-1]
    if isinstance(norm, str):
        layer = _arm(norm, d)
    else:
        module = getattr(norm, "_orig_mod", norm)  # torch.compile wraps the layer
        layer = recognize(module, x, run(module, x))
    at = standardize(layer, x.reshape(-1, d).to("cpu", torch.float64))
    fixed = {"sqrt(d)": math.sqrt(d), "1": 1.0}
    radius = layer.size(layer.g) if layer.radius == "learned" else fixed[layer.radius]
    parts = (
        (at.z * at.sigma).reshape(x.shape),
        (at.z / math.sqrt(d)).reshape(x.shape),
        torch.as_tensor(radius, dtype=torch.float64),
        torch.ones(d) if layer.gain is None else layer.size(layer.gain),
        torch.zeros(d) if layer.bias is None else layer.bias,
    )
    return Factors(*(part.detach().to(x) for part in parts))


def _check_vectors(x: Tensor) -> None:
    """Check that the argument x is a dense tensor of finite vectors."""
    described = f"x is {x.dtype} of shape {tuple(x.shape)}"
    is_dense = x.layout == torch.strided and not x.is_meta
    if not x.dim() or not x.shape[-1] or x.dtype not in TYPES or not is_dense:
        raise Explained(
            f"{described} on {x.device}: give floating-point vectors, (..., d), as a dense tensor "
            "of float64, float32, bfloat16 or float16, with values"
        )
    if is_transformed(x):
        raise Explained(
            f"{described} inside of a transform of torch.func (such as grad or vmap), which shows "
            "no values: call factors outside of it"
        )
    if not x.isfinite().all():
        raise Explained(f"{described}, and not finite: give vectors without NaN and infinity")


def _arm(name: str, d: int) -> TokenNorm:
    """The norm of an arm at initialization, in float64.

    Raises:
        Explained: the arm is unknown, or its norm does not project tokens.
    """
    if name not in ARMS:
        raise Explained(f"unknown arm {name!r}; {suggest(name, ARMS)}")
    layer = build(ARMS[name].norm, d)
    if not isinstance(layer, TokenNorm):
        raise Explained(
            f"the norm of arm {name} does not project each token on a sphere and has no factors: "
            "choose an arm whose statistic is token in normscope.arms()"
        )
    return layer.double()
