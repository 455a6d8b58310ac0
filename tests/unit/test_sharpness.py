"""Sharpness against dense Hessians, and where full-batch Adam is known to hold it."""

import functools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from recall_recipes import dense_hessian, moved, task
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh
from scipy.stats import ortho_group
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.measure.lanczos import largest_eigenvalue
from normscope.measure.sharpness import hessian
from normscope.nn.arms import ARMS
from normscope.studies.recall.model import RecallModel
from normscope.studies.recall.tasks import draw

Closure = Callable[[], Tensor]


def mlp() -> tuple[nn.Module, Closure]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2)).double()
    x, y = (torch.randn(10, n, dtype=torch.float64) for n in (3, 2))
    return model, lambda: F.mse_loss(model(x), y)


def recall_model(arm: str) -> tuple[nn.Module, Closure]:
    torch.manual_seed(1)
    t = task("recall", entities=2, attributes=2, n_embd=4)
    model = RecallModel(t, ARMS[arm].norm).double()
    moved(model)
    tokens, answers = draw(t, 16, torch.Generator().manual_seed(2))
    with torch.no_grad():
        model(tokens)
    model.eval()
    return model, lambda: F.cross_entropy(model(tokens), answers)


CASES = {"mlp": mlp} | {
    arm: lambda arm=arm: recall_model(arm) for arm in ("layernorm", "manual_l2", "batchnorm")
}


@pytest.mark.parametrize("case", CASES)
def test_the_operator_is_torchs_dense_hessian_and_its_top_eigenvalue_the_sharpness(case):
    model, loss = CASES[case]()
    dense = dense_hessian(model, loss)
    operator = hessian(loss(), list(model.parameters()))
    assert operator.shape == dense.shape
    ours = operator.matmat(np.eye(len(dense)))
    np.testing.assert_allclose(ours, dense, rtol=0, atol=1e-10 * np.abs(dense).max())
    eigenvalues = np.linalg.eigvalsh(dense)
    assert eigenvalues[0] < 0  # indefinite, as away from a minimum they are
    assert largest_eigenvalue(operator) == pytest.approx(eigenvalues[-1], rel=1e-3)


@pytest.mark.parametrize(
    "arm", ["layernorm_bias", "rmsnorm_affine", "centered_l2", "scalenorm", "batchnorm", "dyt"]
)
def test_every_kind_of_norm_has_a_hessian(arm: str):
    """Against a difference of gradients: torch lacks second derivatives of some fused layers."""
    model, closure = recall_model(arm)
    parameters = list(model.parameters())
    v = np.random.default_rng(0).standard_normal(sum(p.numel() for p in parameters))
    product = hessian(closure(), parameters) @ v

    def gradient(step: float) -> np.ndarray:
        start = nn.utils.parameters_to_vector(parameters).detach()
        nn.utils.vector_to_parameters(start + step * torch.from_numpy(v), parameters)
        found = torch.autograd.grad(closure(), parameters)
        nn.utils.vector_to_parameters(start, parameters)
        return torch.cat([g.flatten() for g in found]).numpy()

    difference = (gradient(1e-5) - gradient(-1e-5)) / 2e-5
    assert np.abs(product - difference).max() < 1e-5 * np.abs(product).max()


def test_fp32_gives_the_sharpness_of_fp64():
    model, loss = recall_model("layernorm")
    exact = np.linalg.eigvalsh(dense_hessian(model, loss))[-1]
    model.float()
    operator = hessian(loss(), list(model.parameters()))
    assert operator.dtype == np.float32
    assert largest_eigenvalue(operator) == pytest.approx(exact, rel=2e-3)


def quadratic(eigenvalues: list[float], dtype: torch.dtype = torch.float64) -> LinearOperator:
    """Hessian of x'Ax/2 with A of given eigenvalues, x in two parameters."""
    n = len(eigenvalues)
    q = ortho_group.rvs(n, random_state=3)
    a = torch.from_numpy(q @ np.diag(eigenvalues) @ q.T).to(dtype)
    one, two = (torch.ones(k, dtype=dtype, requires_grad=True) for k in (2, n - 2))
    x = torch.cat([one, two])
    return hessian(x @ a @ x / 2, [one, two])


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
    ],
)
def test_the_largest_eigenvalue_is_returned_not_the_largest_in_magnitude(eigenvalues, dtype):
    found = largest_eigenvalue(quadratic(eigenvalues, dtype))
    assert found == pytest.approx(max(eigenvalues), rel=1e-3)


def test_the_operator_is_of_where_the_loss_was_taken():
    """x^4 / 12 has the Hessian diag(x^2); what the parameter is later does not matter to it."""
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
    h = hessian(x.pow(4).sum() / 12, [x])
    np.testing.assert_allclose(h.matmat(np.eye(3)), np.diag([1, 4, 9]), rtol=1e-12)
    assert largest_eigenvalue(h) == pytest.approx(9, rel=1e-3)


def test_without_convergence_there_is_no_number(monkeypatch):
    """One restart of Lanczos is not enough for the edge of a dense spectrum to 12 digits."""
    monkeypatch.setattr("normscope.measure.lanczos.eigsh", functools.partial(eigsh, maxiter=1))
    dense = aslinearoperator(np.diag(np.linspace(0, 1, 400)))
    assert math.isnan(largest_eigenvalue(dense, tolerance=1e-12))


@pytest.mark.parametrize(("factor", "expected"), [(0.0, 0.0), (math.nan, math.nan)])
def test_a_hessian_of_zeros_or_nan_is_no_error(factor, expected):
    found = largest_eigenvalue(aslinearoperator(factor * np.eye(30)))
    assert found == pytest.approx(expected, nan_ok=True)
