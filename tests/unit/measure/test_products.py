"""Products of derivatives with vectors: against dense Jacobians, and how little they load."""

import torch
from torch import Tensor

from normscope.measure.products import transposed_product


def draws(*shape: int, seed: int) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def test_products_equal_those_of_dense_jacobians():
    """y = A b (3, 2): dy_ij/dA_kl = [i = k] b_lj and dy_ij/db_lm = A_il [j = m]."""
    a, b = draws(3, 4, seed=1).requires_grad_(), draws(4, 2, seed=2).requires_grad_()
    unused = draws(5, seed=3).requires_grad_()
    v = draws(3, 2, seed=4)
    by_a, by_b, by_unused = transposed_product(a @ b, [a, b, unused], v)
    torch.testing.assert_close(by_a, v @ b.detach().T)
    torch.testing.assert_close(by_b, a.detach().T @ v)
    assert not by_unused.any()
