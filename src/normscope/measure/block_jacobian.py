"""The Jacobian of a block, I + J with a residual connection, and its singular values."""

import math

import torch
from torch import Tensor, nn

ZERO = 1e-3  # relative to the largest; eps keeps the singular values of a norm above exact 0


def block_jacobian(block: nn.Module, x: Tensor) -> Tensor:
    """dy/dx of ``y = block(x)`` over all tokens together, (n, n) with n = x.numel().

    Args:
        block: maps a tensor to one of the same shape.
        x: input, a few tokens: n backward passes run as one batch.
    """
    leaf = x.detach().requires_grad_()
    y = block(leaf)
    units = torch.eye(x.numel(), dtype=x.dtype, device=x.device).view(-1, *x.shape)
    (rows,) = torch.autograd.grad(y, leaf, units, is_grads_batched=True, materialize_grads=True)
    return rows.reshape(x.numel(), x.numel())


def spectrum(a: Tensor, tokens: int) -> dict[str, float]:
    """Singular values of a Jacobian A = I + J (n, n) over ``tokens``; NaN unless A is finite.

    - ``largest``, ``smallest``.
    - ``branch``: the norm of J, its largest. No singular value of I + J is farther from 1
      (Weyl 1912: Horn & Johnson 2013, Matrix Analysis, corollary 7.3.5).
    - ``lost``: how many per token are below ``ZERO`` times the largest.
    """
    if not a.isfinite().all():
        return dict.fromkeys(("largest", "smallest", "branch", "lost"), math.nan)
    values = torch.linalg.svdvals(a)
    of_branch = torch.linalg.svdvals(a - torch.eye(len(a), dtype=a.dtype, device=a.device))
    return {
        "largest": float(values[0]),
        "smallest": float(values[-1]),
        "branch": float(of_branch[0]),
        "lost": int((values < ZERO * values[0]).sum()) / tokens,
    }
