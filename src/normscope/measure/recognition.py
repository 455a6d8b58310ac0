"""Recognize the norms of torch, of transformers and of users by what they compute."""

import copy
import itertools
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from normscope.errors import Explained
from normscope.measure.decomposition import gradient_at_z, standardize
from normscope.nn.norms import TokenNorm, build
from normscope.nn.recipe import Norm

KINDS = ("LayerNorm", "RMSNorm")  # endings of class names that only norms have
TOKENS = 16  # random ones, by which gain and bias are fitted
LARGE = 1e15  # their size: no eps matters, and float32 holds the square
SIZES = [k / 2 for k in range(-30, 31)]  # of a token that shows eps, their logarithms to base 10
ROUNDING = 1e-5  # of a fitted gain or bias, relative to the largest output
TOLERANCE = 2.5  # of errors, relative to the output's length, in units of the type's eps
EXACT = 1e-4  # the same in finer types


def norms(model: nn.Module) -> dict[str, nn.Module]:
    """The norms of tokens in a model by name, in the model's order."""
    named = {name: m for name, m in model.named_modules() if is_norm(m)}
    if not named:
        kinds = sorted({_kind(m) for m in model.modules() if "norm" in _kind(m).lower()})
        raise Explained(
            f"{_kind(model)} has no LayerNorm, no RMSNorm and no other module that normalizes each "
            f"token: give a model that has one; other norms in it: {', '.join(kinds) or 'none'}"
        )
    return named


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a norm of tokens by its class name or, without children, by running it.

    A wrapper of a norm is none. Only modules with at most two tensors, of one dimension, run.
    """
    inside = list(module.modules())[1:]
    if isinstance(module, TokenNorm) or _kind(module).endswith(KINDS):
        return not any(_kind(m).endswith(KINDS) for m in inside)
    tensors = _tensors(module)
    if inside or type(module).__module__.startswith("torch.") or len(tensors) > 2:
        return False
    like = max(tensors, key=Tensor.numel, default=torch.ones(TOKENS))
    if like.dim() != 1 or like.is_meta or not like.is_floating_point():
        return False
    try:
        _fit(module, like[None, None])
    except Explained:
        return False
    return True


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


def run(module: nn.Module, x: Tensor, *, cast: bool = False) -> Tensor:
    """Run a copy of a module, without its hooks; random number generators keep their state.

    Args:
        cast: whether the copy has the type of x.

    Raises:
        Explained: the module fails on x, or its output does not have the shape of x.
    """
    try:
        with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
            made = copy.deepcopy(module)
            y = first_tensor((made.to(x.dtype) if cast else made).forward(x.clone()))
    except Exception as e:  # of any kind, as the layer is a user's
        reason = " ".join(str(e).split())
        raise Explained(
            f"{_kind(module)} fails on x, {x.dtype} of shape {tuple(x.shape)} on {x.device} "
            f"({reason}): give an input that it accepts"
        ) from e
    if y is None or y.shape != x.shape:
        raise Explained(f"{_kind(module)} does not return a tensor of the shape of x: give a norm")
    return y


@torch.no_grad()
def recognize(module: nn.Module, x: Tensor, y: Tensor) -> TokenNorm:
    """Find the norm of the registry, in float64, that computes what a module computes.

    A copy of the module runs, in the type of x but at least in float32. Random tokens, so large
    that eps does not matter, show whether it centers, its gain and its bias; one token of many
    sizes shows eps. The norm that is found must turn x into y.

    Args:
        module: a norm of torch, of transformers or of a user.
        x: its input, (..., d).
        y: its output for this input, (..., d).

    Returns:
        TokenNorm: its gain and bias are (d,), or (heads, d) if each head has its own.

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
    norm, wide = _fit(module, x), x.to(_wide(x.dtype))
    if _explains(norm, x, y):
        return norm
    if not _explains(norm, wide, run(module, wide, cast=True)):
        reason = "is not sqrt(mean(u^2) + eps) for tokens as small as here: put eps into the root"
        raise Explained(f"sigma of {kind} {reason}, or give a larger input")
    if _explains(norm, x, run(module, x)):
        raise Explained(
            f"the output of {kind} depends on more than its first input: give a module without it"
        )
    raise Explained(f"{kind} overflows or loses digits in {x.dtype}: convert it to torch.float32")


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _exact(x: Tensor) -> Tensor:
    return x.detach().to("cpu", torch.float64)


def _tensors(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]


@torch.no_grad()
def _fit(module: nn.Module, x: Tensor, *, is_moved: bool = False) -> TokenNorm:
    """The norm that a module computes on random tokens.

    Args:
        x: an input, whose type, device and number of dimensions the tokens have.
        is_moved: whether 1 has been added to its parameters, to see more than a gain of 0.
    """
    probes = _probes(module, x)
    plus, minus = (_exact(run(module, sign * probes, cast=True)) for sign in (1, -1))
    odd, even = (plus - minus) / 2, (plus + minus) / 2
    if not odd[:TOKENS].any() and not is_moved:  # another gain than 0 shows the rest
        other = copy.deepcopy(module)
        for p in other.parameters():
            p.add_(1)
        norm = _fit(other, x, is_moved=True)
        return _norm(norm.center, norm.eps, torch.zeros_like(even[0]), even[0])
    probes = _exact(probes)
    large, small = probes[:TOKENS], probes[TOKENS:]
    # the shortest token, which eps makes shorter, hides the bias least
    bias = _find_parameter(even[TOKENS], ROUNDING * plus[TOKENS].abs(), module)
    for center in (True, False):
        z = _unit(large, center)
        gain = (odd[:TOKENS] * z).sum(0) / z.square().sum(0)
        bound = ROUNDING * plus[:TOKENS].abs().amax(0)
        gain = _find_parameter(gain.nan_to_num(), bound, module)
        eps = _eps(small, center, gain, odd[TOKENS:], plus[TOKENS:])
        norm = _norm(center, eps, gain, bias)
        if gain.any() and _explains(norm, large, plus[:TOKENS]):
            return norm
    raise Explained(
        f"{_kind(module)} does not compute a norm of each token, gain * u / sigma + bias with "
        "u = x or u = x - mean(x): give a module without it"
    )


def _probes(module: nn.Module, x: Tensor) -> Tensor:
    """Random tokens with a mean, and one token of many sizes, (tokens, ..., d)."""
    d, inner = x.shape[-1], max(1, x.dim() - 1)
    exact = {"dtype": torch.float64, "device": "cpu"}
    values = 1 + torch.randn(TOKENS, d, generator=torch.Generator().manual_seed(0), **exact)
    sizes = LARGE * torch.linspace(1, 2, TOKENS, **exact)[:, None]
    tokens = torch.cat([sizes * values, 10.0 ** torch.tensor(SIZES, **exact)[:, None] * values[0]])
    shapes = [t.shape for t in _tensors(module) if t.dim() <= inner and t.shape[-1:] == (d,)]
    shape = torch.broadcast_shapes((1,) * (inner - 1) + (d,), *shapes)
    tokens = tokens.view(-1, *[1] * (inner - 1), d).expand(-1, *shape)
    return tokens.to(x.device, _wide(x.dtype))


def _unit(x: Tensor, center: bool) -> Tensor:
    """Tokens of mean square 1, (..., d)."""
    u = x - x.mean(-1, keepdim=True) if center else x
    return u / u.square().mean(-1, keepdim=True).sqrt()


def _find_parameter(value: Tensor, bound: Tensor, module: nn.Module) -> Tensor:
    """The parameter that a fitted gain or bias is, also as 1 + weight, or 1 or 0; or as fitted.

    Args:
        value: as fitted, (..., d).
        bound: of its error, (..., d).
    """
    tensors = [_exact(t) for t in _tensors(module) if t.shape[-1:] == value.shape[-1:]]
    one = torch.ones(value.shape[-1], dtype=value.dtype)
    for t in (*tensors, *(1 + t for t in tensors), one, 0 * one):
        if t.dim() <= value.dim() and bool(((t - value).abs() <= bound).all()):
            return t
    return value


def _eps(x: Tensor, center: bool, gain: Tensor, odd: Tensor, y: Tensor) -> float:
    """The eps of a norm by its outputs at one token of many sizes.

    With ``gain * z * sqrt(v) / sigma`` the odd part of an output, and ``v = mean(u^2)``, it is
    ``sigma^2 - v``, at the size where rounding of the output changes it least.

    Args:
        x: the token, (sizes, ..., d).
        center: whether the norm centers.
        gain: (..., d).
        odd: the odd part of its outputs, (sizes, ..., d).
        y: its outputs, (sizes, ..., d).
    """
    u = (x - x.mean(-1, keepdim=True) if center else x).flatten(1)
    v = u.square().mean(-1)
    along = (gain * _unit(x, center)).flatten(1)
    odd, y = odd.flatten(1), y.flatten(1)
    sigma = v.sqrt() * along.square().sum(-1) / (odd * along).sum(-1)
    error = sigma.square() * y.norm(dim=-1) / odd.norm(dim=-1)
    best = error.nan_to_num(torch.inf).argmin()
    return float(sigma[best].square() - v[best])


def _norm(center: bool, eps: float, gain: Tensor, bias: Tensor) -> TokenNorm:
    """A norm with token statistics; the registry has no eps of 0."""
    tiny = torch.finfo(torch.float64).tiny
    factors = Norm(center=center, gain=True, bias=True, eps=eps if eps > tiny else tiny)
    norm = build(factors, gain.shape[-1])
    assert isinstance(norm, TokenNorm)
    for target, value in ((norm.gain, gain), (norm.bias, bias)):
        assert target is not None
        ones = sum(1 for _ in itertools.takewhile(lambda n: n == 1, value.shape[:-1]))
        target.data = value.reshape(value.shape[ones:]).clone()
    return norm


@torch.no_grad()
def _explains(norm: TokenNorm, x: Tensor, y: Tensor) -> bool:
    """Whether y is what a norm makes of x, up to rounding.

    The centering of a token with a large mean amplifies the rounding of its channels.
    """
    eps = max(torch.finfo(x.dtype).eps, torch.finfo(y.dtype).eps)
    inner = torch.finfo(_wide(x.dtype)).eps
    x, y = _exact(x), _exact(y)
    at = standardize(norm, x)
    ours = gradient_at_z(norm, at.z) + (0.0 if norm.bias is None else norm.bias)
    lengths = x.norm(dim=-1, keepdim=True) / at.sigma
    amplified = float(gradient_at_z(norm, lengths.expand_as(x)).norm())
    bound = max(EXACT, TOLERANCE * eps) * float(y.norm()) + TOLERANCE * inner * amplified
    return float((ours - y).norm()) <= bound
