"""Largest eigenvalues of operators that are known by their products alone."""

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh


def largest_eigenvalue(operator: LinearOperator, tolerance: float = 1e-3) -> float:
    """The largest eigenvalue of a symmetric operator, by ARPACK's Lanczos (``eigsh``).

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
