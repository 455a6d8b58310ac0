"""Sharpness against dense Hessians, and at full-batch Adam's edge of stability."""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from recall_recipes import dense_hessian, move, task
from scipy.stats import ortho_group
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.measure import sharpness
from normscope.measure.sharpness import (
    TOLERANCE,
    Operator,
    hessian,
    largest_eigenvalue,
    precondition,
    ritz,
)
from normscope.nn.arms import ARMS
from normscope.studies.recall.model import RecallModel, draw
from normscope.train.optimizer import AdamW, preconditioner, stability_limit

Closure = Callable[[], Tensor]


def operator(matrix: np.ndarray, dtype: torch.dtype = torch.float64) -> Operator:
    """A symmetric matrix (n, n) as an operator."""
    m = torch.from_numpy(matrix).to(dtype)
    return Operator(lambda v: m @ v, m[0])


def columns(product: Callable[[Tensor], Tensor], n: int) -> np.ndarray:
    """The matrix (n, n) of a product, in float64, from the products with unit vectors."""
    return torch.stack([product(v) for v in torch.eye(n, dtype=torch.float64)], 1).numpy()


def mlp() -> tuple[nn.Module, Closure]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2)).double()
    x, y = (torch.randn(10, n, dtype=torch.float64) for n in (3, 2))
    return model, lambda: F.mse_loss(model(x), y)


def recall_model(arm: str) -> tuple[nn.Module, Closure]:
    torch.manual_seed(1)
    t = task("recall", entities=2, attributes=2, n_embd=4)
    model = RecallModel(t, ARMS[arm].norm).double()
    move(model)
    tokens, answers = draw(t, 16, torch.Generator().manual_seed(2))
    with torch.no_grad():
        model(tokens)
    model.eval()
    return model, lambda: F.cross_entropy(model(tokens), answers)


CASES = {"mlp": mlp} | {
    arm: lambda arm=arm: recall_model(arm) for arm in ("layernorm", "scalenorm", "batchnorm")
}


@pytest.mark.parametrize("case", CASES)
def test_the_operator_and_its_largest_eigenvalue_equal_the_dense_hessians(case):
    model, loss = CASES[case]()
    dense = dense_hessian(model, loss)
    h = hessian(loss(), list(model.parameters()))
    assert h.like.shape == dense[0].shape
    ours = columns(h.product, len(dense))
    np.testing.assert_allclose(ours, dense, rtol=0, atol=1e-10 * np.abs(dense).max())
    eigenvalues = np.linalg.eigvalsh(dense)
    assert eigenvalues[0] < 0  # indefinite, as away from a minimum they are
    assert largest_eigenvalue(h) == pytest.approx(eigenvalues[-1], rel=1e-6)


def test_preconditioned_sharpness_does_not_depend_on_units():
    """A parameter in units of c has c times the gradient and c^2 times the second moment."""
    model, loss = mlp()
    parameters = list(model.parameters())
    h, n = hessian(loss(), parameters), sum(p.numel() for p in parameters)
    g = torch.Generator().manual_seed(4)
    p, units = (torch.rand(n, generator=g, dtype=torch.float64) + 0.1 for _ in range(2))
    dense = dense_hessian(model, loss)
    expected = np.linalg.eigvals(dense / p.numpy()[:, None]).real.max()
    largest = largest_eigenvalue(precondition(h, p))
    assert largest == pytest.approx(expected, rel=1e-6)
    rescaled = Operator(lambda v: units * h.product(units * v), h.like)
    assert largest_eigenvalue(precondition(rescaled, units**2 * p)) == pytest.approx(expected)
    assert largest_eigenvalue(rescaled) != pytest.approx(largest_eigenvalue(h), rel=0.1)


def test_full_batch_adam_settles_at_a_preconditioned_sharpness_of_38_over_the_rate():
    """Cohen et al. 2022 (arXiv:2207.14484): it rises during training and then stays there."""
    torch.manual_seed(0)
    rate, width = 1e-2, 24
    layers = [nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Linear(width, 1)).double()
    x, y = (torch.randn(40, n, dtype=torch.float64) for n in (4, 1))
    parameters = list(model.parameters())
    optimizer = AdamW([p.detach() for p in parameters], [0.0] * len(parameters), 0.9, 0.99)
    shares = []
    for step in range(1, 601):
        loss = F.mse_loss(model(x), y)
        if step > 300 and step % 50 == 0:
            moments = [m for m in optimizer.second_moments() if m is not None]
            p = preconditioner(moments)
            top = largest_eigenvalue(precondition(hessian(loss, parameters), p))
            shares.append(top / (38 / rate))
        optimizer.step(torch.autograd.grad(loss, parameters), rate)
    assert stability_limit(rate, 0.9) == pytest.approx(38 / rate)
    assert np.mean(shares) == pytest.approx(1, abs=0.1)


def rotated(eigenvalues: Sequence[float] | np.ndarray) -> np.ndarray:
    """A symmetric matrix with these eigenvalues."""
    q = ortho_group.rvs(len(eigenvalues), random_state=4) if len(eigenvalues) > 1 else np.eye(1)
    return q @ np.diag(eigenvalues) @ q.T


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    "eigenvalues",
    [
        [1, 2, 5, 0.5, 0.1],
        [-10, 3, 1, 0, -2, 0.5],
        [-5, -1, -2, -9],
        [4, 4, 4, 1, 1],
        [1e6, 1, 1e-6, 2],
        [3e-9, 1e-9, 2e-9, 0],
        [7, 0, 0, 0, 0, 0],
        [-4],
    ],
)
def test_the_largest_eigenvalue_is_returned_not_the_largest_in_magnitude(eigenvalues, dtype):
    ours = largest_eigenvalue(operator(rotated(eigenvalues), dtype))
    assert ours == pytest.approx(max(eigenvalues), rel=TOLERANCE)


SPECTRA = {
    "one stands out": np.append(np.linspace(-1, 1, 199), 3.0),
    "an edge": np.linspace(0, 1, 200),
    "nearly a multiple of 1": 1 + 1e-3 * np.linspace(-1, 1, 200),
    "two that are close": np.append(np.linspace(0, 1, 198), [2.0, 2.02]),
    "several of a value": np.repeat([1.0, 2.0, 5.0], [120, 50, 30]),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_bounds_hold_after_every_product(spectrum):
    """Each bound holds for an eigenvalue; Ritz values converge to the ends from inside."""
    eigenvalues = np.sort(SPECTRA[spectrum])
    steps = list(itertools.islice(ritz(operator(rotated(eigenvalues))), 60))
    rounding = 1e-12
    for m, (values, bounds) in enumerate(steps, 1):
        nearest = np.abs(values.numpy()[:, None] - eigenvalues).min(1)
        assert len(values) == m
        assert (nearest <= bounds.numpy() + rounding).all()
        assert eigenvalues[0] - rounding <= values[0]
        assert values[-1] <= eigenvalues[-1] + rounding
    ends = [[float(values[0]), float(values[-1])] for values, _ in steps]
    assert all(a[0] >= b[0] - rounding for a, b in itertools.pairwise(ends))
    assert all(a[1] <= b[1] + rounding for a, b in itertools.pairwise(ends))
    width = eigenvalues[-1] - eigenvalues[0]
    np.testing.assert_allclose(ends[-1], eigenvalues[[0, -1]], rtol=0, atol=2e-3 * width)


def test_without_convergence_there_is_no_number(monkeypatch):
    """A few products are not enough for the edge of a dense spectrum to 12 digits."""
    dense = operator(np.diag(np.linspace(0, 1, 400)))
    assert largest_eigenvalue(dense, tolerance=1e-12) == pytest.approx(1, rel=1e-12)
    monkeypatch.setattr(sharpness, "STEPS", 20)
    assert math.isnan(largest_eigenvalue(dense, tolerance=1e-12))
