"""The Jacobian of a block, I + J with a residual connection, by its products with vectors."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from normscope.measure.lanczos import TOLERANCE, Operator, ritz
from normscope.measure.products import transposed_product


class Jacobian(NamedTuple):
    """A square matrix A on vectors (n,), by its products."""

    product: Callable[[Tensor], Tensor]
    transposed: Callable[[Tensor], Tensor]
    like: Tensor  # (n,), of the dtype and on the device of the vectors


def block_jacobian(block: nn.Module, x: Tensor) -> Jacobian:
    """dy/dx of ``y = block(x)`` over all tokens of a batch together, (n, n) with n = x.numel().

    Products with the transpose are backward passes; as these are linear in the vector, their own
    backward pass is the product with the Jacobian.

    Args:
        block: maps a tensor to one of the same shape; differentiable twice.
        x: input, float64.
    """
    leaf = x.detach().requires_grad_()
    y = block(leaf)
    dual = torch.zeros_like(y, requires_grad=True)
    (image,) = transposed_product(y, leaf, dual, create_graph=True)

    def product(v: Tensor) -> Tensor:
        return transposed_product(image, dual, v, retain_graph=True)[0].reshape(-1)

    def transposed(v: Tensor) -> Tensor:
        return transposed_product(y, leaf, v, retain_graph=True)[0].reshape(-1)

    return Jacobian(product, transposed, x.detach().reshape(-1))


def extreme_singular_values(a: Jacobian, resolution: float) -> tuple[float, float]:
    """The largest and the smallest singular value of a square matrix A.

    Both are roots of eigenvalues of ``A^T A``, at the two ends of one Lanczos run, each within
    TOLERANCE of the largest of them, and as a rule much closer. NaN where A gives numbers that are
    not finite, and for what has not converged.

    Args:
        a: square.
        resolution: of the smallest, in units of the largest; below it is 0. Ritz values are never
            below the least eigenvalue: the first one below the resolution decides.
    """
    largest = math.nan
    for values, bounds in ritz(Operator(lambda v: a.transposed(a.product(v)), a.like)):
        low, top = float(values[0]), float(values[-1])
        if bounds[-1] > TOLERANCE * top:
            continue
        largest = math.sqrt(top)
        if low <= (resolution * largest) ** 2:
            return largest, 0.0
        if bounds[0] <= TOLERANCE * top:
            return largest, math.sqrt(low)
    return largest, math.nan
