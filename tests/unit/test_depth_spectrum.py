"""Singular values of I + J: closed forms of linear networks, and numpy's of dense Jacobians."""

import math
from typing import get_args

import numpy as np
import pytest
import torch
from depth_recipes import (
    B,
    C,
    Linear,
    T,
    dense,
    normal,
    orthogonal,
    symmetric,
    transformer,
)
from hypothesis import given
from hypothesis import strategies as st
from operators import columns
from torch import Tensor, nn

from normscope.measure import lanczos
from normscope.measure.block_jacobian import Jacobian, block_jacobian, extreme_singular_values
from normscope.measure.lanczos import TOLERANCE
from normscope.nn.recipe import Placement
from normscope.studies.depth.measures import RESOLUTION

D = 12
CLOSE = 1e-3


def extremes(block: nn.Module, x: Tensor) -> tuple[float, float]:
    """Largest, then smallest."""
    return extreme_singular_values(block_jacobian(block, x), RESOLUTION)


def of_matrix(matrix: np.ndarray) -> tuple[float, float]:
    a = torch.from_numpy(matrix)
    return extreme_singular_values(Jacobian(lambda v: a @ v, lambda v: a.T @ v, a[0]), RESOLUTION)


def of_linear(weight: Tensor, *, residual: bool = True) -> tuple[float, float]:
    return extremes(Linear(weight, residual=residual), normal(2, 3, len(weight), seed=9))


@pytest.mark.parametrize(
    ("low", "high"), [(-0.5, 2.0), (-0.2, 0.3), (-3.0, 0.1), (0.5, 4.0), (-1.8, -0.2)]
)
def test_a_symmetric_branch_adds_its_eigenvalues_to_1(low, high):
    """|1 + lambda|, whichever sign lambda has."""
    eigenvalues = torch.linspace(low, high, D, dtype=torch.float64)
    for residual, expected in ((True, (1 + eigenvalues).abs()), (False, eigenvalues.abs())):
        most, least = float(expected.max()), float(expected.min())
        largest, smallest = of_linear(symmetric(eigenvalues), residual=residual)
        assert largest == pytest.approx(most, rel=CLOSE)
        resolved = least if least > RESOLUTION * most else 0.0
        assert smallest == pytest.approx(resolved, rel=CLOSE)


@pytest.mark.parametrize(("share", "is_zero"), [(0.5, True), (0.9, True), (1.2, False), (2, False)])
def test_below_the_resolution_a_smallest_is_0(share, is_zero):
    values = torch.linspace(1, 3, D, dtype=torch.float64)
    values[0] = 3 * RESOLUTION * share
    largest, smallest = of_linear(symmetric(values), residual=False)
    assert largest == pytest.approx(3, rel=CLOSE)
    assert smallest == (0 if is_zero else pytest.approx(float(values[0]), rel=0.02))


@given(st.lists(st.floats(0.1, 10), min_size=4, max_size=10), st.integers(0, 1000))
def test_both_are_those_of_the_matrix_whatever_the_spectrum(values, seed):
    """Clustered too: squares that differ by a few tolerances, of the largest, may be mixed up."""
    left, right = orthogonal(len(values), seed).numpy(), orthogonal(len(values), seed + 1).numpy()
    largest, smallest = of_matrix(left @ np.diag(values) @ right)
    square = max(values) ** 2
    assert largest**2 == pytest.approx(square, rel=10 * TOLERANCE)
    if min(values) > 1.1 * RESOLUTION * max(values):
        assert smallest**2 == pytest.approx(min(values) ** 2, abs=10 * TOLERANCE * square)


@pytest.mark.parametrize("edge", [0.6, 0.9, 0.99])
def test_the_edge_of_a_dense_spectrum_is_reached(edge):
    """Of 600 singular values between it and 1, as blocks with residual connections have them."""
    values = np.linspace(edge, 1, 600)
    largest, smallest = of_matrix(orthogonal(600, 1).numpy() @ np.diag(values))
    assert largest == pytest.approx(1, rel=TOLERANCE)
    assert smallest == pytest.approx(edge, rel=TOLERANCE)


def test_a_matrix_of_zeros_has_singular_values_0():
    assert of_matrix(np.zeros((5, 5))) == (0, 0)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_has_no_singular_values(value):
    weight = torch.eye(D, dtype=torch.float64)
    weight[2, 3] = value
    assert all(math.isnan(v) for v in of_linear(weight))


def test_a_smallest_that_has_not_converged_is_no_number(monkeypatch):
    """Not 0, which would say that a direction is lost. The largest stands out, and is known."""
    values = np.append(np.linspace(0.1, 1, 400), 2.0)
    monkeypatch.setattr(lanczos, "STEPS", 12)
    largest, smallest = of_matrix(np.diag(values))
    assert largest == pytest.approx(2, rel=TOLERANCE)
    assert math.isnan(smallest)


CELLS = [
    (arm, placement)
    for placement in get_args(Placement)
    for arm in (["none"] if placement == "none" else ["layernorm", "rmsnorm", "batchnorm"])
]
X = 1.3 * normal(B, T, C, seed=4)


@pytest.mark.parametrize("residual", [True, False], ids=["residual", "plain"])
@pytest.mark.parametrize(("arm", "placement"), CELLS)
def test_of_a_real_block_they_are_those_of_the_dense_jacobian(arm, placement, residual):
    block = transformer(arm, placement, residual=residual, init="xavier").blocks[0]
    for p in block.parameters():
        if p.dim() < 2:  # gains and biases away from their start
            p.data += 0.2 * normal(*p.shape, seed=len(p))
    for buffers in block.buffers():
        buffers.requires_grad_(False)
    ours = block_jacobian(block, X)
    jacobian = without_statistics(block)
    np.testing.assert_allclose(columns(ours.product, X.numel()), jacobian, atol=1e-12)
    np.testing.assert_allclose(columns(ours.transposed, X.numel()), jacobian.T, atol=1e-12)
    exact = np.linalg.svd(jacobian, compute_uv=False)
    largest, smallest = extreme_singular_values(ours, RESOLUTION)
    assert largest**2 == pytest.approx(exact[0] ** 2, rel=TOLERANCE)
    if exact[-1] < RESOLUTION * exact[0]:
        assert smallest == 0
    else:
        assert smallest**2 == pytest.approx(exact[-1] ** 2, abs=TOLERANCE * exact[0] ** 2)


def without_statistics(block: nn.Module) -> np.ndarray:
    """Dense, with running statistics off, which functional transforms cannot write."""
    for m in block.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.track_running_stats, m.running_mean, m.running_var = False, None, None
            m.num_batches_tracked = None
    return dense(block, X)


@pytest.mark.parametrize(("arm", "couples"), [("layernorm", False), ("batchnorm", True)])
def test_the_jacobian_couples_windows_where_the_norm_does(arm, couples):
    """BatchNorm's statistics in training are of the whole batch."""
    block = transformer(arm).blocks[0]
    first = torch.zeros(X.numel(), dtype=torch.float64)
    first[: T * C] = normal(T * C, seed=8)
    elsewhere = block_jacobian(block, X).product(first)[T * C :]
    assert bool(elsewhere.abs().max() > 1e-6) == couples
    if not couples:
        assert not elsewhere.any()
