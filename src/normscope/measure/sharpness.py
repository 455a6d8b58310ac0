"""The sharpness of a loss: the largest eigenvalue of its Hessian, from products with vectors.

With a diagonal preconditioner it is the sharpness that an adaptive optimizer meets.

Lanczos (Parlett 1998, The Symmetric Eigenvalue Problem, chapter 13): after m products the
eigenvalues of a small tridiagonal matrix, the Ritz values, come close to the extreme eigenvalues of
the operator, from inside its spectrum. The next off-diagonal entry times the last entry of a small
eigenvector is the length of a Ritz vector's residual: so close is its Ritz value to an eigenvalue.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from normscope.measure.derivatives import transposed_product

TOLERANCE = 1e-4  # see largest_eigenvalue
STEPS = 300  # products after which Lanczos gives up
BASIS = 32  # initial capacity in vectors; doubled on demand


class Operator(NamedTuple):
    """A symmetric operator on vectors (n,)."""

    product: Callable[[Tensor], Tensor]
    like: Tensor  # (n,), of the dtype and on the device of the vectors


class Ritz(NamedTuple):
    """Ritz values, ascending, and bounds of their errors, each (m,): float64, on the CPU."""

    values: Tensor
    bounds: Tensor


def ritz(operator: Operator) -> Iterator[Ritz]:
    """Ritz values after m = 1, 2, ... products, up to STEPS or the first that is not finite.

    Each vector is made orthogonal to all before it, because rounding would repeat eigenvalues
    otherwise. This is done twice: for an operator close to a multiple of the identity, most of the
    remainder after the first time is rounding. A bound below the rounding of the largest Ritz value
    is 0, and so are all bounds once the vectors span the whole space. The start is Gaussian and the
    same for every operator of a size.
    """
    n, g = len(operator.like), torch.Generator().manual_seed(0)
    rest = torch.randn(n, generator=g, dtype=torch.float64).to(operator.like)
    length, last = _length(rest), min(n, STEPS)
    basis = rest.new_empty(min(n, BASIS), n)
    tridiagonal = torch.zeros(last + 1, last + 1, dtype=torch.float64)  # small: on the CPU
    for m in range(1, last + 1):
        if m > len(basis):
            basis = torch.cat([basis, torch.empty_like(basis)])
        basis[m - 1] = rest / length
        rest = operator.product(basis[m - 1])
        tridiagonal[m - 1, m - 1] = float(basis[m - 1] @ rest)
        for _ in range(2):
            rest = rest - (basis[:m] @ rest) @ basis[:m]
        length = _length(rest)
        if not math.isfinite(length):
            return
        values, vectors = torch.linalg.eigh(tridiagonal[:m, :m])
        bounds = length * vectors[-1].abs()
        rounding = torch.finfo(rest.dtype).eps * values.abs().max()
        yield Ritz(values, bounds.where((bounds > rounding) & (m < n), 0))
        tridiagonal[m, m - 1] = tridiagonal[m - 1, m] = length


def _length(v: Tensor) -> float:
    """Norm in float64: in fp32 a sum of 1e5 squares, and so an eigenvalue, is off by 1e-6."""
    return float(torch.linalg.vector_norm(v, dtype=torch.float64))


def largest_eigenvalue(operator: Operator, tolerance: float = TOLERANCE) -> float:
    """The largest eigenvalue of a symmetric operator.

    NaN if Lanczos does not converge or the operator gives numbers that are not finite.

    Args:
        operator: symmetric.
        tolerance: relative, the largest bound of the error to stop at. The error itself goes with
            the square of the bound, over the distance to the next eigenvalue (Parlett 1998, theorem
            11.7.1): at 1e-4 it is below 1e-6, the rounding of products in fp32. On their way to the
            largest eigenvalue Ritz values rest at the next one; at 1e-2 that would often be the
            end, at 1e-4 where the two are a few 1e-4 apart.
    """
    for values, bounds in ritz(operator):
        if bounds[-1] <= tolerance * values[-1].abs():
            return float(values[-1])
    return math.nan


def hessian(loss: Tensor, parameters: Sequence[Tensor]) -> Operator:
    """The Hessian of ``loss`` as an operator on flat vectors (p,), without the matrix itself.

    ``H v`` is the gradient of ``<gradient of the loss, v>`` (Pearlmutter 1994), exact. The graph of
    the gradient is made once for all products.

    Args:
        loss: scalar, with its graph; twice differentiable.
        parameters: that it depends on, p numbers of one dtype in all.
    """
    gradient = _flat(torch.autograd.grad(loss, parameters, create_graph=True))

    def product(v: Tensor) -> Tensor:
        return _flat(transposed_product(gradient, parameters, v, retain_graph=True))

    return Operator(product, gradient.detach())


def precondition(h: Operator, p: Tensor) -> Operator:
    """``P^-1/2 H P^-1/2``, symmetric, with the eigenvalues of ``P^-1 H``.

    Of Adam's preconditioner it does not depend on the unit of any parameter: one that is written as
    c times another has c times its gradient, and c^2 times its curvature.

    Args:
        h: the operator H on vectors (n,).
        p: diagonal of P, positive, (n,).
    """
    root = p.to(h.like).rsqrt()
    return Operator(lambda v: root * h.product(root * v), h.like)


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.reshape(-1) for t in tensors])
