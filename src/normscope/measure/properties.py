"""Properties of any norm, found by running it: invariances, locality, bounds, the norm it equals.

A norm is a module that maps ``(windows, T, d)`` to the same shape. It is run in float64 and in
training mode, in which BatchNorm takes the statistics of the batch, with the same random numbers
each time.
"""

import copy
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from normscope.measure.products import transposed_product
from normscope.nn.norms import build
from normscope.nn.recipe import Norm

WINDOWS, T = 4, 8
FACTOR, LARGE = 10.0, 1e6  # of inputs: where invariance is tested, and where bounds are
INVARIANT = 1e-3  # relative change of the output up to which it counts as unchanged
SAME = 1e-6  # relative difference of the outputs of two norms that are one
SLOPE = 0.1  # of the slope at 0, below which a channel is saturated
MOST_ORDERS = 24  # of the parameters of a norm, in which it is compared with known norms
SEED = 0


def tokens(d: int, seed: int = SEED) -> Tensor:
    """Gaussian tokens with a mean of 0.5, (WINDOWS, T, d) in float64."""
    g = torch.Generator().manual_seed(seed)
    return torch.randn(WINDOWS, T, d, generator=g, dtype=torch.float64) + 0.5


def run(norm: nn.Module, x: Tensor) -> Tensor:
    """The output of a copy in training mode; torch's generator stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return copy.deepcopy(norm).double().train()(x)


def change(y: Tensor, before: Tensor) -> float:
    """``||y - before|| / ||before||``; NaN where ``before`` is 0."""
    size = float(before.norm())
    return float((y - before).norm()) / size if size else math.nan


@torch.no_grad()
def invariances(norm: nn.Module, d: int) -> dict[str, float]:
    """Relative changes of the output.

    - ``scale``: of all tokens 10 times as large.
    - ``shift``: of all tokens shifted by the same number in every channel.
    - ``rotation``: the difference between rotating the input and rotating the output.
    - ``tokens``, ``batch``: of a token when the others of its window change, or other windows.
    """
    x = tokens(d)
    y = run(norm, x)
    square = torch.randn(d, d, generator=torch.Generator().manual_seed(1), dtype=x.dtype)
    rotation = torch.linalg.qr(square).Q
    other, kept = tokens(d, 2), T // 2  # a token with earlier and later ones
    window, batch = other.clone(), x.clone()
    window[:, kept], batch[1:] = x[:, kept], other[1:]
    return {
        "scale": change(run(norm, FACTOR * x), y),
        "shift": change(run(norm, x + FACTOR), y),
        "rotation": change(run(norm, x @ rotation), y @ rotation),
        "tokens": change(run(norm, window)[:, kept], y[:, kept]),
        "batch": change(run(norm, batch)[0], y[0]),
    }


def is_elementwise(norm: nn.Module, d: int) -> bool:
    """Whether a channel of a token's output depends on this channel of this token alone."""
    x, one = tokens(d), tokens(d, 1)
    one[0, 0, 0] = x[0, 0, 0]
    with torch.no_grad():
        return change(run(norm, one)[0, 0, :1], run(norm, x)[0, 0, :1]) < SAME


def saturation(norm: nn.Module, x: Tensor) -> float:
    """The share of the channels of x (..., d) at which a bounded elementwise norm is nearly flat.

    Their slope is less than ``SLOPE`` of that at 0. NaN for norms that are not elementwise, not
    bounded, or flat at 0.
    """
    d = x.shape[-1]
    with torch.no_grad():
        far, farther = (run(norm, factor * tokens(d)) for factor in (LARGE, LARGE * FACTOR))
    if not is_elementwise(norm, d) or change(farther, far) > INVARIANT:
        return math.nan
    at = x.double().reshape(1, -1, d)
    slopes, flat = (_slopes(norm, where) for where in (at, torch.zeros_like(at)))
    if not flat.all():
        return math.nan
    return float((slopes.abs() < SLOPE * flat.abs()).double().mean())


def _slopes(norm: nn.Module, x: Tensor) -> Tensor:
    leaf = x.detach().requires_grad_()
    y = run(norm, leaf)
    return transposed_product(y, leaf, torch.ones_like(y))[0]


class Nearest(NamedTuple):
    """The known norm that computes most nearly the same.

    Args:
        name: Its name.
        difference: Relative difference of the outputs, for tokens of several sizes.
        large: The same for large tokens, to which eps does not matter.
        starts: Whether the parameters of both start with the same values.
    """

    name: str
    difference: float
    large: float
    starts: bool


def nearest(norm: nn.Module, known: Mapping[str, Norm], d: int) -> Nearest:
    """The known norm that computes most nearly the same, and how much the outputs differ.

    Both have the same parameters, whose order does not matter: those with which the norm starts in
    training, with random numbers added. A known norm with other shapes of parameters keeps those
    with which it starts, with random numbers added. Ties go to shapes and to values of parameters
    that are the same at the start.

    Args:
        norm: Any norm of d channels.
        known: Factors by name.
        d: Channels.
    """
    numbers = [p.numel() for p in norm.parameters()]
    orders = list(itertools.permutations(range(len(numbers))))[:MOST_ORDERS]
    versions = [perturbed(norm, order) for order in orders]
    outputs = [_outputs(version, d) for version in versions]
    candidates = []
    for name, factors in known.items():
        other = build(factors, d).double()
        sizes = [p.numel() for p in other.parameters()]
        apart = _outputs(perturbed(other, range(len(sizes))), d)
        for order, version, ours in zip(orders, versions, outputs, strict=True):
            is_alike = len(sizes) == len(order) and [sizes[i] for i in order] == numbers
            same = _outputs(_given(other, version, order), d) if is_alike else apart
            starts = is_alike and _same_values(other, norm, order)
            all_sizes, large = (change(y, to) for y, to in zip(ours, same, strict=True))
            candidates.append((all_sizes, not is_alike, not starts, name, large))
    all_sizes, _, differs, name, large = min(candidates)
    return Nearest(name, all_sizes, large, not differs)


@torch.no_grad()
def _given(norm: nn.Module, other: nn.Module, order: Sequence[int]) -> nn.Module:
    """A copy of a norm with the parameters of another: the one in place i is number order[i]."""
    norm = copy.deepcopy(norm)
    own = list(norm.parameters())
    for i, p in zip(order, other.parameters(), strict=True):
        own[i].copy_(p.reshape(own[i].shape))
    return norm


def _same_values(norm: nn.Module, other: nn.Module, order: Sequence[int]) -> bool:
    own = list(norm.parameters())
    pairs = zip(order, other.parameters(), strict=True)
    return all(torch.equal(own[i].double().flatten(), p.double().flatten()) for i, p in pairs)


@torch.no_grad()
def _outputs(norm: nn.Module, d: int) -> tuple[Tensor, Tensor]:
    """The outputs for tokens of several sizes, and for large tokens."""
    y = [run(norm, size * tokens(d, seed)) for seed, size in enumerate((1.0, 0.1, 3.0, LARGE))]
    return torch.stack(y[:3]), y[3]


@torch.no_grad()
def perturbed(norm: nn.Module, order: Sequence[int]) -> nn.Module:
    """A copy in float64 with random numbers added to the parameters: number ``order[i]`` to i."""
    norm = copy.deepcopy(norm).double()
    for i, p in zip(order, norm.parameters(), strict=True):
        g = torch.Generator().manual_seed(i)
        p.add_(0.1 * torch.randn(p.shape, generator=g, dtype=torch.float64))
    return norm


def singular_values(norm: Callable[[Tensor], Tensor], token: Tensor) -> Tensor:
    """Singular values of the Jacobian of a norm at a token (d,), which is a window by itself.

    NaN if an entry is not finite.
    """
    x = token.double().reshape(1, 1, -1).requires_grad_()
    y = norm(x)
    units = torch.eye(x.numel(), dtype=x.dtype)
    rows = [transposed_product(y, x, unit, retain_graph=True)[0].flatten() for unit in units]
    jacobian = torch.stack(rows)
    if not jacobian.isfinite().all():
        return torch.full_like(x.detach().flatten(), math.nan)
    return torch.linalg.svdvals(jacobian)


class Shares(NamedTuple):
    """Shares of a gradient's energy. They add up to 1 where the tokens have mean zero.

    Args:
        mean: Along 1.
        radial: Along the token.
        rest: Orthogonal to both.
    """

    mean: float
    radial: float
    rest: float


def shares(v: Tensor, x: Tensor) -> Shares:
    """Mean shares of the energy of v along 1, along the tokens x and outside their plane.

    Both are (tokens, d). Tokens where v is zero are left out.
    """
    energy = v.square().sum(-1)
    centered = [t - t.mean(-1, keepdim=True) for t in (v, x)]
    along_ones = v.mean(-1).square() * v.shape[-1]
    rest = centered[0].square().sum(-1) - _energy_along(*centered)
    is_known = energy > 0
    parts = (part[is_known] / energy[is_known] for part in (along_ones, _energy_along(v, x), rest))
    return Shares(*(float(part.mean()) for part in parts))


def _energy_along(v: Tensor, x: Tensor) -> Tensor:
    """The energy of v along x, by token; zero where x is zero."""
    return (v * x).sum(-1).square() / x.square().sum(-1).clamp_min(torch.finfo(x.dtype).tiny)
