"""Ranks of activations, and Jacobians of blocks: closed forms and central differences."""

from typing import get_args

import numpy as np
import pytest
import torch
from depth_recipes import B, C, Linear, T, normal, symmetric, transformer
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from torch import Tensor, nn

from normscope.measure.derivatives import transposed_product
from normscope.measure.spectrum import (
    ZERO,
    block_jacobian,
    effective_rank,
    jacobian_spectrum,
    singular_values,
)
from normscope.nn.recipe import Placement

matrices = arrays(np.float64, (9, 5), elements=st.floats(-10, 10)).map(torch.from_numpy)
RANKS = {
    "matrix": effective_rank,
    "covariance": lambda s: effective_rank(s.square()),
}


def orthogonal(n: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(stats.ortho_group.rvs(n, random_state=seed))


def with_values(*values: float, rows: int = 8) -> Tensor:
    """A matrix (rows, 6) of given singular values."""
    s = torch.zeros(6, dtype=torch.float64)
    s[: len(values)] = torch.tensor(values)
    return orthogonal(rows, 1)[:, :6] * s @ orthogonal(6, 2)


@given(x=matrices)
def test_centered_singular_values_are_those_of_the_covariance(x):
    eigenvalues = np.linalg.eigvalsh(np.cov(x.numpy(), rowvar=False, bias=True))[::-1]
    s = singular_values(x, centered=True)
    np.testing.assert_allclose(s.square().numpy() / len(x), eigenvalues, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # shares 1/2, 1/4, 1/4: entropy 1.5 ln 2
        ((2, 1, 1), {"matrix": 2**1.5}),
        # shares of squares 2/3, 1/6, 1/6
        ((2, 1, 1), {"covariance": (3 / 2) ** (2 / 3) * 6 ** (1 / 3)}),
        ((3, 3), {"matrix": 2, "covariance": 2}),
        ((7,), {"matrix": 1, "covariance": 1}),
    ],
)
def test_ranks_of_known_spectra(values, expected):
    s = singular_values(with_values(*values), centered=False)
    for name, value in expected.items():
        assert RANKS[name](s) == pytest.approx(value, rel=1e-9)


D, TOKENS = 12, 6


def of_linear(weight: Tensor, *, residual: bool = True) -> dict[str, float]:
    block = Linear(weight, residual=residual)
    return jacobian_spectrum(
        block_jacobian(block, normal(2, TOKENS // 2, len(weight), seed=9)), TOKENS
    )


@pytest.mark.parametrize(
    ("low", "high"), [(-0.5, 2.0), (-0.2, 0.3), (-3.0, 0.1), (0.5, 4.0), (-1.8, -0.2)]
)
def test_a_symmetric_branch_adds_its_eigenvalues_to_1(low, high):
    """|1 + lambda|, whichever sign lambda has; the norm of J is the largest |lambda|."""
    eigenvalues = torch.linspace(low, high, D, dtype=torch.float64)
    for residual, expected in ((True, (1 + eigenvalues).abs()), (False, eigenvalues.abs())):
        made = of_linear(symmetric(eigenvalues), residual=residual)
        assert made["largest"] == pytest.approx(float(expected.max()))
        assert made["smallest"] == pytest.approx(float(expected.min()))
    assert of_linear(symmetric(eigenvalues))["branch"] == pytest.approx(max(-low, high))


@pytest.mark.parametrize(("share", "lost"), [(0.5, 3), (0.0, 3), (2.0, 0)])
def test_lost_directions_are_counted_per_token(share, lost):
    """Three directions per token."""
    values = torch.full((D,), 2.0, dtype=torch.float64)
    values[:3] = 2 * ZERO * share
    assert of_linear(symmetric(values), residual=False)["lost"] == lost


CELLS = [
    (arm, placement)
    for placement in get_args(Placement)
    for arm in (["none"] if placement == "none" else ["layernorm", "rmsnorm", "batchnorm"])
]
X = 1.3 * normal(B, T, C, seed=4)


def block_of(arm: str, placement: Placement, *, residual: bool = True) -> nn.Module:
    """A block of a Transformer with gains and biases away from their start."""
    block = transformer(arm, placement, residual=residual, init="xavier").blocks[0]
    for p in block.parameters():
        if p.dim() < 2:
            p.data += 0.2 * normal(*p.shape, seed=len(p))
    return block


@pytest.mark.parametrize("residual", [True, False], ids=["residual", "plain"])
@pytest.mark.parametrize(("arm", "placement"), CELLS)
def test_the_jacobian_of_a_block_equals_central_differences(arm, placement, residual):
    """The error of steps of 1e-6 is their square, plus rounding divided by them."""
    block = block_of(arm, placement, residual=residual)
    ours = block_jacobian(block, X).numpy()
    step = 1e-6 * torch.eye(X.numel(), dtype=torch.float64).view(-1, *X.shape)
    with torch.no_grad():
        columns = [(block(X + h) - block(X - h)).flatten().numpy() / 2e-6 for h in step]
    np.testing.assert_allclose(ours, np.stack(columns, 1), atol=1e-7)


def test_products_equal_those_of_dense_jacobians():
    """y = A b (3, 2): dy_ij/dA_kl = [i = k] b_lj and dy_ij/db_lm = A_il [j = m]."""
    a, b = normal(3, 4, seed=1).requires_grad_(), normal(4, 2, seed=2).requires_grad_()
    unused = normal(5, seed=3).requires_grad_()
    v = normal(3, 2, seed=4)
    by_a, by_b, by_unused = transposed_product(a @ b, [a, b, unused], v)
    torch.testing.assert_close(by_a, v @ b.detach().T)
    torch.testing.assert_close(by_b, a.detach().T @ v)
    assert not by_unused.any()
