"""Ranks of activations: closed forms, bounds and invariances."""

import itertools
import math

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
spectra = (
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12)
    .map(lambda v: torch.tensor(sorted(v, reverse=True), dtype=torch.float64))
)  # fmt: skip
RANKS = {
    "matrix": effective_rank,
    "covariance": lambda s: effective_rank(s.square()),
    "stable": stable_rank,
    "participation": participation_ratio,
}
ALL = pytest.mark.parametrize("rank", RANKS.values(), ids=RANKS.keys())


def orthogonal(n: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(stats.ortho_group.rvs(n, random_state=seed))


def with_values(*values: float, rows: int = 8) -> Tensor:
    """A matrix (rows, 6) of given singular values."""
    s = torch.zeros(6, dtype=torch.float64)
    s[: len(values)] = torch.tensor(values)
    return orthogonal(rows, 1)[:, :6] * s @ orthogonal(6, 2)


@given(x=matrices)
def test_centered_ones_are_those_of_the_covariance(x):
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


@ALL
@given(s=spectra)
def test_ranks_are_between_one_and_the_number_of_values(rank, s):
    """Roy & Vetterli 2007, property 1, for the effective rank."""
    assert 1 - 1e-9 <= rank(s) <= len(s) * (1 + 1e-9)


@given(s=spectra)
def test_ranks_are_in_the_order_of_renyi_entropies(s):
    """Of the shares of variance: order infinity, 2 and 1; then the flatter shares of s itself."""
    ranks = [RANKS[n](s) for n in ("stable", "participation", "covariance", "matrix")]
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(ranks))


@ALL
def test_a_spectrum_of_zeros_has_no_rank(rank):
    assert math.isnan(rank(torch.zeros(4, dtype=torch.float64)))
