"""Products of derivatives with vectors, and whether a backward pass is a derivative.

The latter is tested by difference quotients. A quotient is off by the square of its step, and by
rounding over the step. Step and tolerance therefore follow from the precision in which the code
computes, which may be less than that of its inputs.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Function = Callable[..., Tensor]
DIRECTIONS = 9
# steps and tolerances for code that computes in float64 or float32, and in 16 bits
FINE = (2.0**-20, 1e-3), (2.0**-9, 1e-3)
COARSE = ((2.0**-4, 0.1),)
ROUNDED = 2.0**-13  # of an output, relative to its size: its second difference for a step of 2^-9


def transposed_product(
    y: Tensor,
    x: Tensor | Sequence[Tensor],
    v: Tensor,
    *,
    retain_graph: bool = False,
) -> tuple[Tensor, ...]:
    """``(dy/dx)^T v``, a tensor for each of ``x``; zeros where y does not depend on it.

    It is computed as the gradient of ``<y, v>``. Passing v as ``grad_outputs`` gives the same bits,
    but torch then imports sympy to compare shapes, which takes 2 s per process.

    Args:
        y: with its graph.
        x: variables to differentiate with respect to.
        v: as many numbers as y has, in the same order.
        retain_graph: y is to be differentiated again.
    """
    along = torch.dot(y.reshape(-1), v.reshape(-1))
    return torch.autograd.grad(along, x, retain_graph=retain_graph, materialize_grads=True)


def is_coarse(f: Function, x: Tensor) -> bool:
    """Whether a function of an input in float64 computes in 16 bits, such as bfloat16.

    Its second difference is then larger than that of most smooth functions, and does not fall with
    the square of the step.
    """
    (along,) = random_direction([x], seed=0)
    with torch.no_grad():
        y = f(x)
        bends = [
            float((f(x + step * along) + f(x - step * along) - 2 * y).abs().mean())
            for step in (2.0**-9, 2.0**-11)
        ]
    return ROUNDED * float(y.abs().mean()) < bends[0] < 8 * bends[1]


def is_derivative(f: Function, inputs: Sequence[Tensor], *, coarse: bool) -> bool:
    """Whether the gradients of a number agree with its difference quotients.

    Args:
        f: From the inputs to a number.
        inputs: In float64; they require gradients.
        coarse: What ``is_coarse`` says of the function.
    """
    y = f(*inputs)
    gradients = [torch.zeros_like(one) for one in inputs]
    if y.requires_grad:
        gradients = torch.autograd.grad(y, inputs, materialize_grads=True)
    directions = [random_direction(inputs, seed) for seed in range(DIRECTIONS)]
    rates = torch.stack([inner_product(gradients, along) for along in directions])
    size = rates.square().mean().sqrt().maximum(y.detach().abs())

    def quotient(along: Sequence[Tensor], step: float) -> Tensor:
        ends = []
        for signed in (step, -step):
            moved = [one + signed * v for one, v in zip(inputs, along, strict=True)]
            ends.append(f(*(one.detach().requires_grad_() for one in moved)).detach())
        return (ends[0] - ends[1]) / (2 * step)

    for step, tolerance in COARSE if coarse else FINE:
        quotients = torch.stack([quotient(along, step) for along in directions])
        # the median, as few directions cross a kink
        if (quotients - rates).abs().median() <= tolerance * size:
            return True
    return False


def inner_product(one: Sequence[Tensor], other: Sequence[Tensor]) -> Tensor:
    """The sum of the products of all numbers."""
    return torch.stack([(a * b).sum() for a, b in zip(one, other, strict=True)]).sum()


def random_direction(inputs: Sequence[Tensor], seed: int) -> list[Tensor]:
    """A random direction, along which no number that is not 0 changes its sign in small steps."""
    g = torch.Generator().manual_seed(seed)
    directions = []
    for one in inputs:
        noise = torch.randn(one.shape, generator=g, dtype=one.dtype)
        at = one.detach()
        directions.append(torch.where(at == 0, noise, at * (1 + noise)))
    return directions
