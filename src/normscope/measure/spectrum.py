"""Effective dimensions of activations, from the singular values of a matrix (n, d) of n outputs."""

import torch
from torch import Tensor


def singular_values(x: Tensor, *, centered: bool) -> Tensor:
    """Singular values of ``x`` (n, d), largest first, (min(n, d),), in float64.

    Args:
        x: one output per row.
        centered: subtract the mean row first. The squares are then n times the eigenvalues of the
            covariance; otherwise a common offset counts as a direction.
    """
    x = x.double()
    return torch.linalg.svdvals(x - x.mean(0) if centered else x).cpu()


def effective_rank(spectrum: Tensor) -> float:
    """``exp(-sum p ln p)`` of the shares ``p = spectrum / sum`` (Roy & Vetterli 2007, eq. 4).

    Of singular values it is the effective rank of the matrix, of their squares that of the
    covariance, which is smaller: it is between 1 and the number of values, which equal ones reach.
    NaN of a spectrum that is zero.
    """
    p = spectrum / spectrum.sum()
    return float(torch.special.entr(p).sum().exp())


def stable_rank(s: Tensor) -> float:
    """``||A||_F^2 / ||A||_2^2`` from singular values (Rudelson & Vershynin 2007, section 1)."""
    return float((s / s[0]).square().sum())


def participation_ratio(s: Tensor) -> float:
    """``(sum s^2)^2 / sum s^4``: the directions that carry variance (Gao et al. 2017)."""
    shares = s.square() / s.square().sum()
    return float(1 / shares.square().sum())
