"""Recognize the norms of torch, of transformers and of users by what they compute."""

import copy
import itertools
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from normscope.errors import Explained
from normscope.measure.decomposition import gradient_at_z, standardize
from normscope.nn.norms import TokenNorm, build
from normscope.nn.recipe import Norm

KINDS = ("LayerNorm", "RMSNorm")  # endings of the class names of norms
EPS = ("eps", "variance_epsilon", "epsilon", "norm_eps")  # names of the attribute eps
TORCH = (nn.LayerNorm, nn.RMSNorm)  # classes whose formulas are known
PROBED = 16  # tokens on which other classes are tried
TOLERANCE = 2.5  # of errors, relative to the output's length, in units of the type's eps
EXACT = 1e-4  # the same in finer types; a variance over d - 1 instead of d is off by 1 / 2d


def norms(model: nn.Module) -> dict[str, nn.Module]:
    """The LayerNorms and RMSNorms of a model by name, in the model's order.

    Raises:
        Explained: it has none.
    """
    named = {name: m for name, m in model.named_modules() if is_norm(m)}
    if not named:
        kinds = sorted({type(m).__name__ for m in model.modules() if "norm" in _kind(m).lower()})
        raise Explained(
            f"{_kind(model)} has no module whose class name ends with LayerNorm or RMSNorm: give a "
            f"model that has one; other norms in it: {', '.join(kinds) or 'none'}"
        )
    return named


def is_norm(module: nn.Module) -> bool:
    """Whether the class name says that a module is a norm; wrappers of a norm are excluded."""
    is_leaf = next(module.children(), None) is None
    return is_leaf and (isinstance(module, TokenNorm) or _kind(module).endswith(KINDS))


def _kind(module: nn.Module) -> str:
    return type(module).__name__


def first_tensor(value: object) -> Tensor | None:
    """A tensor, or the first of a tuple, a list or a mapping."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return next((item for item in value if isinstance(item, Tensor)), None)
    return value if isinstance(value, Tensor) else None


def is_transformed(t: Tensor) -> bool:
    """Whether a tensor is a wrapper without memory, as in the transforms of torch.func."""
    try:
        t.data_ptr()
    except RuntimeError:
        return True
    return False


def run(module: nn.Module, x: Tensor) -> Tensor:
    """Run a copy of a module, without its hooks; random number generators keep their state.

    Raises:
        Explained: the module fails on x, or its output does not have the shape of x.
    """
    try:
        with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
            y = first_tensor(copy.deepcopy(module).forward(x.clone()))
    except Exception as e:  # of any kind, as the layer is a user's
        reason = " ".join(str(e).split())
        raise Explained(
            f"{_kind(module)} fails on x, {x.dtype} of shape {tuple(x.shape)} on {x.device} "
            f"({reason}): give an input that it accepts"
        ) from e
    if y is None or y.shape != x.shape:
        raise Explained(f"{_kind(module)} does not return a tensor of the shape of x: give a norm")
    return y


def recognized(module: nn.Module, x: Tensor, y: Tensor) -> TokenNorm:
    """Find the norm of the registry, in float64, that computes what a module computes.

    Some classes center and some do not, and some store the gain as ``1 + weight``. x may not tell,
    as where its mean is 0. So a copy of any module that is not one of torch's runs on random tokens
    of the size of x, and the norm that comes closest to its output is chosen. This norm must turn
    the random tokens, and x, into what the module makes of them.

    Args:
        module: a norm of torch, of transformers or of a user.
        x: its input, (..., d).
        y: its output for this input, (..., d).

    Raises:
        Explained: it is not such a norm, or x or y is not finite.
    """
    kind = _kind(module)
    if isinstance(module, TokenNorm):
        return copy.deepcopy(module).cpu().double()
    if not (x.is_floating_point() and y.is_floating_point() and x.shape == y.shape and x.dim()):
        raise Explained(
            f"{kind} turns {x.dtype} of shape {(*x.shape,)} into {y.dtype} of shape {(*y.shape,)}: "
            "a norm keeps the shape of a floating-point input"
        )
    if len(getattr(module, "normalized_shape", x.shape[-1:])) > 1:
        raise Explained(f"{kind} takes its mean over several dimensions: give a norm of the last")
    if not x.isfinite().all():
        raise Explained(
            f"the input of {kind} is not finite: find the first layer before it whose output has "
            "NaN or infinity"
        )
    if not y.isfinite().all():
        raise Explained(
            f"the output of {kind} is not finite: its parameters have NaN or infinity, or x is too "
            "large for it"
        )
    pairs = [(x, y)]
    if type(module) not in TORCH:
        probe = _random_tokens(x)
        pairs.append((probe, run(module, probe)))
    best = min(_candidates(module, x), key=lambda norm: _error(norm, *pairs[-1]))
    if any(_error(best, *pair) > _tolerance(best, *pair) for pair in pairs):
        raise Explained(
            f"{kind} does not compute a norm of each token, gain * x / sigma + bias of x or of "
            "x - mean(x), or its input overflows: give a module without it, or a smaller input"
        )
    return best


def _random_tokens(x: Tensor) -> Tensor:
    """Tokens with a mean, about as large as those of x: (..., tokens, d), as many dimensions."""
    size = float(x.double().square().mean().sqrt()) if x.numel() else 1.0
    values = torch.randn(PROBED, x.shape[-1], generator=torch.Generator().manual_seed(0)) + 1
    shape = [1] * (x.dim() - 2) + list(values.shape)
    return ((size or 1.0) * values).reshape(shape).to(x)


def _tokens(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1]).to("cpu", torch.float64)


@torch.no_grad()
def _error(norm: TokenNorm, x: Tensor, y: Tensor) -> float:
    """The length of the difference between y and what a norm makes of x."""
    return float((norm(_tokens(x)) - _tokens(y)).norm())


@torch.no_grad()
def _tolerance(norm: TokenNorm, x: Tensor, y: Tensor) -> float:
    """The largest error that rounding explains.

    The centering of a token with a large mean amplifies the rounding of its channels.
    """
    eps = max(torch.finfo(x.dtype).eps, torch.finfo(y.dtype).eps)
    inner = torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps
    lengths = _tokens(x).norm(dim=-1, keepdim=True) / standardize(norm, _tokens(x)).sigma
    amplified = float(gradient_at_z(norm, lengths.expand(-1, x.shape[-1])).norm())
    return max(EXACT, TOLERANCE * eps) * float(_tokens(y).norm()) + TOLERANCE * inner * amplified


def _candidates(module: nn.Module, x: Tensor) -> Iterator[TokenNorm]:
    """Norms that a module may compute, with its weights; the one that its name suggests first."""
    d, eps = x.shape[-1], _eps(module, x.dtype)
    weights = dict(module.named_parameters(recurse=False))
    fitting = [p for p in weights.values() if p.numel() == d]
    pairs = list(itertools.permutations([*fitting, None], 2)) or [(None, None)]
    centers = (False, True) if _kind(module).endswith("RMSNorm") else (True, False)
    offsets = (0.0, 1.0)
    if type(module) in TORCH:
        pairs, centers = [(weights.get("weight"), weights.get("bias"))], centers[:1]
        offsets = (0.0,)
    for center, (gain, bias) in itertools.product(centers, pairs):
        for offset in offsets if gain is not None else (0.0,):
            factors = Norm(center=center, gain=gain is not None, bias=bias is not None, eps=eps)
            norm = build(factors, d).double()
            assert isinstance(norm, TokenNorm)
            for target, given, add in ((norm.gain, gain, offset), (norm.bias, bias, 0.0)):
                if target is not None and given is not None:
                    target.data = given.detach().double().cpu().flatten() + add
            yield norm


def _eps(module: nn.Module, dtype: torch.dtype) -> float:
    """The eps of a module; torch's RMSNorm without one takes that of the type it computes in."""
    named = (getattr(module, name, None) for name in EPS)
    given = next((value for value in named if value is not None), None)
    if given is None:
        return torch.finfo(torch.promote_types(dtype, torch.float32)).eps
    return float(given) or torch.finfo(torch.float64).tiny  # the registry has no eps of 0
