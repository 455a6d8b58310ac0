"""Ranks of activations: closed forms, bounds and invariances."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from torch import Tensor

from normscope.measure.spectrum import (
    effective_rank,
    participation_ratio,
    singular_values,
    stable_rank,
)

matrices = arrays(np.float64, (9, 5), elements=st.floats(-10, 10)).map(torch.from_numpy)
RANKS = {
    "matrix": effective_rank,
    "covariance": lambda s: effective_rank(s.square()),
    "stable": stable_rank,
    "participation": participation_ratio,
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
        ((2, 1, 1), {"stable": 6 / 4, "participation": 36 / 18}),
        ((3, 3), {"matrix": 2, "covariance": 2, "stable": 2, "participation": 2}),
        ((4, 3), {"stable": 25 / 16, "participation": 625 / 337}),
        ((7,), {"matrix": 1, "covariance": 1, "stable": 1, "participation": 1}),
    ],
)
def test_ranks_of_known_spectra(values, expected):
    s = singular_values(with_values(*values), centered=False)
    for name, value in expected.items():
        assert RANKS[name](s) == pytest.approx(value, rel=1e-9)
