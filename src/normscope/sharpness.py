"""Sharpness: the largest eigenvalue of the Hessian of a loss, by Lanczos.

Hessian-vector products are torch's, Lanczos is ARPACK's (``scipy.sparse.linalg.eigsh``).
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from torch import Tensor


def hessian(loss: Tensor, parameters: Sequence[Tensor]) -> LinearOperator:
    """The Hessian of ``loss`` as an operator on flat vectors (p,), without the matrix itself.

    ``H v`` is the gradient of ``<gradient of the loss, v>`` (Pearlmutter 1994), exact.

    Args:
        loss: scalar, with its graph; twice differentiable.
        parameters: that it depends on, p numbers of one dtype in all.
    """
    gradient = torch.autograd.grad(loss, parameters, create_graph=True)
    sizes = [p.numel() for p in parameters]
    dtype = parameters[0].dtype

    def product(v: np.ndarray) -> np.ndarray:
        parts = torch.from_numpy(np.ascontiguousarray(v).reshape(-1)).to(dtype).split(sizes)
        along = [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]
        columns = torch.autograd.grad(
            gradient, parameters, along, retain_graph=True, materialize_grads=True
        )
        return torch.cat([c.reshape(-1) for c in columns]).numpy()

    n = sum(sizes)
    return LinearOperator((n, n), matvec=product, dtype=torch.empty(0, dtype=dtype).numpy().dtype)


def sharpness(operator: LinearOperator, tolerance: float = 1e-3) -> float:
    """The largest eigenvalue of a symmetric operator.

    NaN if Lanczos does not converge or the operator gives numbers that are not finite.

    Args:
        operator: symmetric.
        tolerance: relative, of the eigenvalue.
    """
    start = np.random.default_rng(0).standard_normal(operator.shape[0]).astype(operator.dtype)
    once = operator @ start
    if not np.isfinite(once).all():
        return float("nan")
    if not once.any():
        return 0.0  # of a random vector: the operator is zero, where ARPACK cannot start
    try:
        (value,) = eigsh(
            operator, k=1, which="LA", v0=start, tol=tolerance, return_eigenvectors=False
        )
    except ArpackNoConvergence:
        return float("nan")
    return float(value)
