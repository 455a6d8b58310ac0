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

from normscope.measure.derivatives import is_coarse, transposed_product
from normscope.nn.norms import build
from normscope.nn.recipe import Norm

WINDOWS, T = 4, 8
FACTOR, LARGE = 10.0, 1e6  # of inputs: where invariance is tested, and where bounds are
INVARIANT = 1e-3  # relative change of the output up to which it counts as unchanged
HIDDEN = 0.1  # relative change up to which it may be rounding to 16 bits
SAME = 1e-6  # relative difference of the outputs of two norms that are one
# relative differences of outputs that count as equal, such as those of another eps, or next to the
# least one; and those that are no likeness
NEAR, TIE, FAR = 0.01, 1.05, 0.5
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
    """Relative changes of the output; NaN where rounding to 16 bits hides whether there is one.

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
    changes = {
        "scale": change(run(norm, FACTOR * x), y),
        "shift": change(run(norm, x + FACTOR), y),
        "rotation": change(run(norm, x @ rotation), y @ rotation),
        "tokens": change(run(norm, window)[:, kept], y[:, kept]),
        "batch": change(run(norm, batch)[0], y[0]),
    }
    if not is_coarse(lambda at: run(norm, at), x):
        return changes
    return {name: math.nan if INVARIANT < v < HIDDEN else v for name, v in changes.items()}


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
    """The known norms that compute most nearly the same.

    Args:
        names: Their names; none where all are ``FAR``, or the outputs are not finite.
        difference: Relative difference of the outputs, for tokens of several sizes.
        large: The same for large tokens, to which eps does not matter.
        starts: Whether the parameters of both start with the same values; None if they have
            different parameters.
    """

    names: list[str]
    difference: float
    large: float
    starts: bool | None


class _Candidate(NamedTuple):
    apart: int  # parameters that one of the two norms has alone
    differs: bool  # whether those that both have start with other values
    difference: float
    large: float
    name: str


def nearest(norm: nn.Module, known: Mapping[str, Norm], d: int) -> Nearest:
    """The known norms that compute most nearly the same, and how much the outputs differ.

    Parameters of one size are shared, in any order: both norms have the values with which this
    norm starts in training, with random numbers added. Others have their starting values. Of the
    known norms whose difference is within ``NEAR`` or ``TIE`` of the least, those that share most
    parameters count; of norms that compute the same, the first with the same starting values.

    Args:
        norm: Any norm of d channels.
        known: Factors by name.
        d: Channels.
    """
    candidates = [
        _compare(name, norm, build(factors, d).double(), shared, d)
        for name, factors in known.items()
        for shared in _shared_parameters(norm, build(factors, d))
    ]
    least = min(
        (c.difference for c in candidates if not math.isnan(c.difference)), default=math.nan
    )
    near = [c for c in candidates if c.difference <= max(NEAR, TIE * least)]
    if not near:
        return Nearest([], math.nan, math.nan, None)
    fewest = [c for c in near if c.apart == min(near).apart]
    bound = max(SAME, TIE * min(c.difference for c in fewest))
    first, *others = sorted(c for c in fewest if c.difference <= bound)
    names = [first.name] if min(first.difference, first.large) < FAR else []
    if names and first.difference > SAME:
        names = list(dict.fromkeys([*names, *(c.name for c in others)]))
    starts = None if first.apart else not first.differs
    return Nearest(names, first.difference, first.large, starts)


def _shared_parameters(norm: nn.Module, other: nn.Module) -> set[tuple[int | None, ...]]:
    """For each parameter of the other norm, the number of that of this norm that it shares."""
    numbers = [p.numel() for p in norm.parameters()]
    matches = set()
    for order in itertools.islice(itertools.permutations(range(len(numbers))), MOST_ORDERS):
        free, shared = list(order), []
        for p in other.parameters():
            i = next((i for i in free if numbers[i] == p.numel()), None)
            shared.append(i)
            if i is not None:
                free.remove(i)
        matches.add(tuple(shared))
    return matches


@torch.no_grad()
def _compare(
    name: str, norm: nn.Module, other: nn.Module, shared: Sequence[int | None], d: int
) -> _Candidate:
    moved, values = copy.deepcopy(norm).double(), list(perturb(norm).parameters())
    ours, theirs = list(moved.parameters()), list(other.parameters())
    pairs = [(ours[i], p, values[i]) for i, p in zip(shared, theirs, strict=True) if i is not None]
    differs = any(not torch.equal(ours.flatten(), p.flatten()) for ours, p, _ in pairs)
    for one, p, value in pairs:
        one.copy_(value)
        p.copy_(value.reshape(p.shape))
    outputs = zip(_outputs(moved, d), _outputs(other, d), strict=True)
    difference, large = (change(y, to) for y, to in outputs)
    apart = len(ours) + len(theirs) - 2 * len(pairs)
    return _Candidate(apart, differs, difference, large, name)


@torch.no_grad()
def _outputs(norm: nn.Module, d: int) -> tuple[Tensor, Tensor]:
    """The outputs for tokens of several sizes, and for large tokens."""
    y = [run(norm, size * tokens(d, seed)) for seed, size in enumerate((1.0, 0.1, 3.0, LARGE))]
    return torch.stack(y[:3]), y[3]


@torch.no_grad()
def perturb(norm: nn.Module) -> nn.Module:
    """A copy in float64 with random numbers added to the parameters, a tenth of their size."""
    norm = copy.deepcopy(norm).double()
    for i, p in enumerate(norm.parameters()):
        g = torch.Generator().manual_seed(i)
        noise = torch.randn(p.shape, generator=g, dtype=torch.float64)
        p.add_(0.1 * noise * torch.where(p == 0, 1, p.abs()))
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
