"""The Jacobian of a block, I + J with a residual connection, by its products with vectors."""

import math
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator
from torch import Tensor, nn

from normscope.measure.lanczos import largest_eigenvalue


def block_jacobian(block: nn.Module, x: Tensor) -> LinearOperator:
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
    (transposed,) = torch.autograd.grad(y, leaf, dual, create_graph=True)

    def product(output: Tensor, source: Tensor) -> Any:
        def apply(v: np.ndarray) -> np.ndarray:
            along = torch.from_numpy(np.ascontiguousarray(v)).to(output).reshape(output.shape)
            (image,) = torch.autograd.grad(
                output, source, along, retain_graph=True, materialize_grads=True
            )
            return image.reshape(-1).cpu().numpy()

        return apply

    return LinearOperator(
        (x.numel(), x.numel()),
        matvec=product(transposed, dual),
        rmatvec=product(y, leaf),
        dtype=np.float64,
    )


def extreme_singular_values(operator: LinearOperator, resolution: float) -> tuple[float, float]:
    """The largest and the smallest singular value of a square operator A.

    The largest is the root of the largest eigenvalue c of ``A^T A``, the smallest that of
    ``c - (largest eigenvalue of c - A^T A)``. NaN where A gives numbers that are not finite.

    Args:
        operator: square.
        resolution: of the smallest, in units of the largest; below it is 0.
    """
    square = operator.H @ operator
    top = largest_eigenvalue(square, resolution)
    if not top > 0:
        return top, top
    bound = top * (1 + 2 * resolution)  # above all eigenvalues, as Lanczos comes from below
    rest = LinearOperator(operator.shape, matvec=lambda v: bound * v - square @ v, dtype=np.float64)
    low = bound - largest_eigenvalue(rest, resolution**2)
    if math.isnan(low):
        return math.sqrt(top), math.nan
    smallest = math.sqrt(max(low, 0.0))
    return math.sqrt(top), smallest if smallest > resolution * math.sqrt(top) else 0.0
