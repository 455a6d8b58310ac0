"""Norms of torch, of transformers and of users as those of the registry, by what they compute."""

import copy
import itertools
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from normscope.errors import Explained
from normscope.nn.norms import TokenNorm, build
from normscope.nn.recipe import Norm

KINDS = ("LayerNorm", "RMSNorm")  # how names of their classes end
EPS = ("eps", "variance_epsilon", "epsilon")  # how their eps is called
# of the output's length: what rounding in a type can do, and more than that
ROUNDING, TOLERANCE = 1, 2.5  # times the type's eps
EXACT = 1e-4  # in types that are finer: a variance over d - 1 differs from one over d by 1 / 2d


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


def channels(module: nn.Module, x: Tensor) -> tuple[int, ...]:
    """The dimensions of x that are one token to a norm: over these it takes its mean."""
    return tuple(getattr(module, "normalized_shape", x.shape[-1:]))


def recognized(module: nn.Module, x: Tensor, y: Tensor) -> TokenNorm:
    """A norm as one of the registry's, in float64: what it computes decides, not how it is written.

    Some classes center and some do not, some have the gain as ``1 + weight``: of these the one is
    taken that turns x into y, and of several, as where the mean of x is 0, the one of its name.

    Args:
        module: a norm of torch, of transformers or of one's own.
        x: an input, (tokens, d).
        y: what the module makes of it, (tokens, d).

    Raises:
        Explained: it is none of them.
    """
    if isinstance(module, TokenNorm):
        return copy.deepcopy(module).cpu().double()
    eps = max(torch.finfo(x.dtype).eps, torch.finfo(y.dtype).eps)
    candidates = _candidates(module, x.shape[-1], _eps(module, x.dtype))
    x, y = x.double().cpu(), y.double().cpu()
    if not (x.isfinite().all() and y.isfinite().all()):
        raise Explained(f"{_kind(module)}: what enters or leaves it is not finite")
    length = float(y.norm())
    with torch.no_grad():
        errors = [(float((norm(x) - y).norm()), norm) for norm in candidates]
    error, best = min(errors, key=lambda pair: max(pair[0], ROUNDING * eps * length))
    if error > max(EXACT, TOLERANCE * eps) * length:
        raise Explained(
            f"{_kind(module)} is no norm of a token, gain * x / sigma + bias of x or x - mean(x): "
            "give a module without it"
        )
    return best


def _candidates(module: nn.Module, d: int, eps: float) -> Iterator[TokenNorm]:
    """The norms that a module may be, with its weights; what its name says first."""
    fitting = [p for p in module.parameters(recurse=False) if p.numel() == d]
    pairs = list(itertools.permutations([*fitting, None], 2)) or [(None, None)]
    centers = (False, True) if _kind(module).endswith("RMSNorm") else (True, False)
    for center, (gain, bias) in itertools.product(centers, pairs):
        for offset in (0.0, 1.0) if gain is not None else (0.0,):
            factors = Norm(center=center, gain=gain is not None, bias=bias is not None, eps=eps)
            norm = build(factors, d).double()
            assert isinstance(norm, TokenNorm)
            for own, given, add in ((norm.gain, gain, offset), (norm.bias, bias, 0.0)):
                if own is not None and given is not None:
                    own.data = given.detach().double().cpu().flatten() + add
            yield norm


def _eps(module: nn.Module, dtype: torch.dtype) -> float:
    """A module's own; torch's RMSNorm without one has that of the type it computes in."""
    named = (getattr(module, name, None) for name in EPS)
    given = next((value for value in named if value is not None), None)
    if given is not None:
        return float(given) or torch.finfo(torch.float64).tiny  # the registry has none of 0
    return torch.finfo(torch.promote_types(dtype, torch.float32)).eps
