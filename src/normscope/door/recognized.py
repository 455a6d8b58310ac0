"""Recognize the norms of torch, of transformers and of users by what they compute."""

import copy
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn

from normscope.errors import Explained
from normscope.measure.decomposition import gradient_at_z, standardize
from normscope.nn.norms import TokenNorm, build
from normscope.nn.recipe import Norm

KINDS = ("LayerNorm", "RMSNorm")  # endings of the class names of norms
EPS = ("eps", "variance_epsilon", "epsilon", "norm_eps")  # names of the attribute eps
TORCH = (nn.LayerNorm, nn.RMSNorm)  # classes whose formulas are known
CONSTANT = 1e-12  # relative to the length of x; a shorter x - mean(x) is rounding
# errors relative to the output's length, in units of the type's eps: expected and tolerated
ROUNDING, TOLERANCE = 1, 2.5
EXACT = 1e-4  # tolerance in finer types; a variance over d - 1 instead of d is off by 1 / 2d


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


def channels(module: nn.Module, x: Tensor) -> tuple[int, ...]:
    """The sizes of the last dimensions of x, over which a norm takes its mean.

    Raises:
        Explained: x does not have the dimensions that the norm takes.
    """
    given = (module.d,) if isinstance(module, TokenNorm) else x.shape[-1:]
    shape = getattr(module, "normalized_shape", given)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if not x.dim() or not shape or tuple(x.shape[-len(shape) :]) != shape:
        wanted = ", ".join(map(str, shape)) or "d"
        raise Explained(
            f"{_kind(module)} takes inputs of shape (..., {wanted}), and not {tuple(x.shape)}"
        )
    return shape


def tokens(module: nn.Module, x: Tensor) -> Tensor:
    """x as the tokens that a norm sees, (tokens, d)."""
    return x.reshape(-1, math.prod(channels(module, x)))


def check_values(module: nn.Module, x: Tensor) -> None:
    """Check that a norm and its input have values.

    Raises:
        Explained: one of their tensors is on the meta device.
    """
    if any(t.is_meta for t in (x, *module.parameters(), *module.buffers())):
        raise Explained(
            f"{_kind(module)} or its input is on the meta device, without values: load it first"
        )


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

    Some classes center and some do not, and some store the gain as ``1 + weight``, so the norm is
    chosen that turns x into y. Where x and y do not tell whether the module centers, as where the
    mean of x is 0, a copy of the module runs on another input.

    Args:
        module: a norm of torch, of transformers or of a user.
        x: its input, (..., d).
        y: its output for this input, (..., d).

    Raises:
        Explained: it is not such a norm, or x and y do not tell.
    """
    kind = _kind(module)
    check_values(module, x)
    if isinstance(module, TokenNorm):
        return copy.deepcopy(module).cpu().double()
    if not (x.is_floating_point() and y.is_floating_point() and x.shape == y.shape):
        raise Explained(
            f"{kind} turns {x.dtype} of shape {(*x.shape,)} into {y.dtype} of shape {(*y.shape,)}: "
            "a norm keeps the shape of a floating-point input"
        )
    at = tokens(module, x).double().cpu()
    fitting = _fitting(module, _candidates(module, at.shape[1], _eps(module, x.dtype)), x, y)
    if type(module) not in TORCH:
        u = standardize(fitting[0], at)
        if (u.z * u.sigma).norm() <= CONSTANT * at.norm():
            raise Explained(
                f"the inputs of {kind} are zero or constant, which does not tell what it computes: "
                "give other inputs"
            )
    return fitting[0] if _agree(fitting) else _told_apart(module, fitting, x)


def _agree(norms: list[TokenNorm]) -> bool:
    """Whether either all norms center or none does."""
    return len({norm.center for norm in norms}) == 1


def _told_apart(module: nn.Module, norms: list[TokenNorm], x: Tensor) -> TokenNorm:
    """Choose between norms that do the same to x by running the module on another input.

    Raises:
        Explained: the module does not run on another input, or that does not tell either.
    """
    at = tokens(module, x).double().cpu()
    # about as large as x; its tokens are not constant and do not have mean 0
    rising = torch.arange(1, at.shape[1] + 1) / at.shape[1]
    other = (at.square().mean(-1, keepdim=True).sqrt() * rising).to(x).reshape(x.shape)
    try:
        norms = _fitting(module, norms, other, run(module, other))
        reason = "nor do others"
    except Explained as e:
        reason = f"and it cannot be run on others ({e})"
    else:
        if _agree(norms):
            return norms[0]
    raise Explained(
        f"the inputs of {_kind(module)}, such as those of mean 0, do not tell whether it centers, "
        f"{reason}: give inputs with another mean and weights other than 0, or a module without it"
    )


def _fitting(
    module: nn.Module, norms: Iterable[TokenNorm], x: Tensor, y: Tensor
) -> list[TokenNorm]:
    """The norms that turn x into y up to rounding, the closest first.

    Raises:
        Explained: none does, or x or y is not finite.
    """
    _check_finite(module, x, y)
    eps = max(torch.finfo(x.dtype).eps, torch.finfo(y.dtype).eps)
    inner = torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps
    x, y = (tokens(module, t).double().cpu() for t in (x, y))
    length = float(y.norm())
    with torch.no_grad():
        errors = [(max(float((n(x) - y).norm()), ROUNDING * eps * length), n) for n in norms]
        error, best = min(errors, key=lambda pair: pair[0])
        # centering a token with a large mean amplifies the rounding of its channels
        lengths = x.norm(dim=-1, keepdim=True) / standardize(best, x).sigma
        amplified = float(gradient_at_z(best, lengths).norm())
    if error > max(EXACT, TOLERANCE * eps) * length + TOLERANCE * inner * amplified:
        raise Explained(
            f"{_kind(module)} does not compute a norm of each token, gain * x / sigma + bias of x "
            "or of x - mean(x), or its input overflows: give a module without it, or a smaller "
            "input"
        )
    alike = [norm for other, norm in errors if other <= TOLERANCE * error and norm is not best]
    return [best, *alike]


def _check_finite(module: nn.Module, x: Tensor, y: Tensor) -> None:
    """Check that the input and the output of a norm are finite.

    Raises:
        Explained: one is not; a parameter that is not finite is named.
    """
    kind = _kind(module)
    if not x.isfinite().all():
        raise Explained(
            f"the input of {kind} is not finite: find the first layer before it whose output has "
            "NaN or infinity"
        )
    if y.isfinite().all():
        return
    for name, p in module.named_parameters():
        if not p.isfinite().all():
            raise Explained(
                f"the parameter {name} of {kind} has NaN or infinity: give a module whose "
                "parameters are finite"
            )
    raise Explained(
        f"the output of {kind} is not finite, although its input and its parameters are: give a "
        "smaller input, or a type with a larger range"
    )


def _candidates(module: nn.Module, d: int, eps: float) -> Iterator[TokenNorm]:
    """Norms that a module may compute, with its weights; the one that its name suggests first."""
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
