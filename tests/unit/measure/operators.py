"""Matrices as operators, and operators as matrices."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from normscope.measure.lanczos import Operator


def operator(matrix: np.ndarray, dtype: torch.dtype = torch.float64) -> Operator:
    """A symmetric matrix (n, n) by its products."""
    m = torch.from_numpy(matrix).to(dtype)
    return Operator(lambda v: m @ v, m[0])


def columns(product: Callable[[Tensor], Tensor], n: int) -> np.ndarray:
    """The matrix (n, n) of a product, in float64, from the products with unit vectors."""
    return torch.stack([product(v) for v in torch.eye(n, dtype=torch.float64)], 1).numpy()
