"""The norms of a model, one row each, found by running it."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from normscope.measure.decomposition import gradient_at_z, standardize
from normscope.measure.folding import Fold, foresee
from normscope.measure.frozen_norms import Sigmas, sigmas
from normscope.measure.places import Places, calling
from normscope.measure.readers import Readers, reading
from normscope.measure.recognition import run
from normscope.nn.norms import TokenNorm

WINDOWS, POSITIONS = 2, 8  # of the tokens that show the graph
TRIAL = 2.5  # a value of a parameter that shows whether it is the gain
ROUNDING = 1e-4  # of its output
NO_EPS = torch.finfo(torch.float64).tiny  # what a norm of the registry has in place of 0


class Run(Protocol):
    """The logits of a model for tokens (windows, positions)."""

    def __call__(self, tokens: Tensor, *, grad: bool = False) -> Tensor: ...


def inventory(
    model: nn.Module, norms: Mapping[str, nn.Module], batches: Sequence[Tensor], logits: Run
) -> list[dict[str, Any]]:
    """The rows of ``normscope.norms``.

    Args:
        model: in evaluation mode, and in float32 or float64.
        batches: of tokens, (windows, positions) each.
    """
    measured = sigmas(norms, batches, logits)
    with reading(model, norms) as readers, calling(model, norms) as calls:
        end = logits(batches[0][:WINDOWS, :POSITIONS], grad=True)
    places = Places(end, calls)
    with torch.no_grad():
        return [_row(name, norm, measured[name], readers, places) for name, norm in norms.items()]


def _row(
    name: str, norm: nn.Module, sigma: Sigmas, readers: Readers, places: Places
) -> dict[str, Any]:
    """The row of a norm; what cannot be known is missing."""
    layer = sigma.layer
    fold = Fold(problem=sigma.problem) if layer is None else foresee(layer, name, readers)
    row: dict[str, Any] = {
        "norm": name,
        "kind": type(norm).__name__,
        "place": places.find(name),
        "feeds": readers.names(name),
        "folds": fold.problem is None,
        "adds_bias": fold.adds_bias,
        "cancelled_by": None,
        "problem": fold.problem,
    }
    if layer is None:
        return row
    x, _ = readers.first_call(name)
    gain = gradient_at_z(layer, torch.ones(x.shape[-1], dtype=torch.float64))  # with a radius
    has_bias = layer.bias is not None and bool(layer.bias.any())
    first, later = sigma.means_apart()
    return row | {
        "computes": "LayerNorm" if layer.center else "RMSNorm",
        "eps": layer.eps if layer.eps > NO_EPS else 0.0,
        "gain_as": _storage(norm, layer, x),
        "gain_low": float(gain.min()),
        "gain_high": float(gain.max()),
        "cancelled_by": [] if has_bias else places.cancelling(name),
        "sigma": float(later[0]),
        "sigma_first": float(first[0]),
        "size": float(later[1]),
        "size_first": float(first[1]),
    }


def _storage(norm: nn.Module, layer: TokenNorm, x: Tensor) -> str | None:
    """How parameters of a norm store its gain: as w or 1 + w; none of them, or in another way.

    Args:
        layer: what the norm computes.
        x: its input, whose shape and type random tokens have here.
    """
    x = torch.randn(x.shape, generator=torch.Generator().manual_seed(0)).to(x)
    z = standardize(layer, x.to("cpu", torch.float64)).z
    plain, kept = gradient_at_z(layer, z, gain=False), gradient_at_z(layer, z)
    for name, _ in norm.named_parameters():
        changed = copy.deepcopy(norm)
        changed.get_parameter(name).fill_(TRIAL)
        odd = (run(changed, x) - run(changed, -x)).to("cpu", torch.float64) / 2  # without a bias
        expected = {"w": TRIAL * plain, "1 + w": (1 + TRIAL) * plain, "none": kept}
        close = (how for how, y in expected.items() if _is_close(odd, y, plain))
        if (storage := next(close, None)) != "none":
            return storage
    return "none"


def _is_close(y: Tensor, expected: Tensor, plain: Tensor) -> bool:
    return float((y - expected).norm()) <= ROUNDING * float(plain.norm() + expected.norm())
