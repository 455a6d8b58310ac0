"""Norms of torch, of transformers and of users as those of the registry, by what they compute."""

import copy
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from normscope.errors import Explained
from normscope.nn.norms import TokenNorm, build
from normscope.nn.recipe import Norm

KINDS = ("LayerNorm", "RMSNorm")  # how names of their classes end
EPS = ("eps", "variance_epsilon", "epsilon")  # how their eps is called
TOLERANCE = 0.02  # of the output's length: in bfloat16 a norm is off by less than 0.004


def norms(model: nn.Module) -> dict[str, nn.Module]:
    """LayerNorms and RMSNorms of a model by their names, in its order.

    Raises:
        Explained: it has none.
    """
    named = {name: m for name, m in model.named_modules() if is_norm(m)}
    if not named:
        kinds = sorted({type(m).__name__ for m in model.modules() if "norm" in _kind(m).lower()})
        raise Explained(
            f"{_kind(model)} has no LayerNorm and no RMSNorm: give a module that has one, of a "
            f"class whose name ends so; other norms in it: {', '.join(kinds) or 'none'}"
        )
    return named


def is_norm(module: nn.Module) -> bool:
    """Whether a module is one by its name; what only wraps one is none."""
    is_leaf = next(module.children(), None) is None
    return is_leaf and (isinstance(module, TokenNorm) or _kind(module).endswith(KINDS))


def _kind(module: nn.Module) -> str:
    return type(module).__name__


def channels(module: nn.Module, x: Tensor) -> int:
    """How many values of x are one token to a norm: over so many it takes its mean."""
    return math.prod(getattr(module, "normalized_shape", x.shape[-1:]))


def recognized(module: nn.Module, x: Tensor, y: Tensor) -> TokenNorm:
    """A norm as one of the registry's, in float64: what it computes decides, not how it is written.

    Some classes center and some do not, some have the gain as ``1 + weight``: of these the one is
    taken that turns x into y.

    Args:
        module: a norm of torch, of transformers or of one's own.
        x: an input, (tokens, d).
        y: what the module makes of it, (tokens, d).

    Raises:
        Explained: it is none of them.
    """
    if isinstance(module, TokenNorm):
        return copy.deepcopy(module).cpu().double()
    x, y = x.double().cpu(), y.double().cpu()
    with torch.no_grad():
        errors = [(float((norm(x) - y).norm()), norm) for norm in _candidates(module, x)]
    error, best = min(errors, key=lambda pair: pair[0])
    if not error <= TOLERANCE * float(y.norm()):
        raise Explained(
            f"{_kind(module)} is no norm of a token, gain * x / sigma + bias of x or x - mean(x): "
            "give a module without it"
        )
    return best


def _candidates(module: nn.Module, x: Tensor) -> Iterator[TokenNorm]:
    """The norms that a module may be, with its weights, eps and bias."""
    d = x.shape[-1]
    fitting = {n: p for n, p in module.named_parameters(recurse=False) if p.numel() == d}
    bias = fitting.pop("bias", None)
    weight = next(iter(fitting.values()), None)
    centers = (True, False)
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        centers = (isinstance(module, nn.LayerNorm),)
    for center in centers:
        for offset in (0.0, 1.0) if weight is not None else (0.0,):
            factors = Norm(
                center=center, gain=weight is not None, bias=bias is not None, eps=_eps(module, x)
            )
            norm = build(factors, d).double()
            assert isinstance(norm, TokenNorm)
            for own, given, add in ((norm.gain, weight, offset), (norm.bias, bias, 0.0)):
                if own is not None and given is not None:
                    own.data = given.detach().double().cpu().flatten() + add
            yield norm


def _eps(module: nn.Module, x: Tensor) -> float:
    """torch's RMSNorm without one has that of its type."""
    named = (getattr(module, name, None) for name in EPS)
    given = next((value for value in named if value), None)
    return float(given) if given else torch.finfo(torch.float32).eps
