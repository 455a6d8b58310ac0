"""Products of derivatives with vectors, by automatic differentiation."""

from collections.abc import Sequence

import torch
from torch import Tensor


def transposed_product(
    y: Tensor,
    x: Tensor | Sequence[Tensor],
    v: Tensor,
    *,
    retain_graph: bool = False,
) -> tuple[Tensor, ...]:
    """``(dy/dx)^T v``, a tensor for each of ``x``; zeros where y does not depend on it.

    It is computed as the gradient of ``<y, v>``. Passing v as ``grad_outputs`` gives the same bits,
    but torch then imports sympy to compare shapes, which takes 2 s per process.

    Args:
        y: with its graph.
        x: variables to differentiate with respect to.
        v: as many numbers as y has, in the same order.
        retain_graph: y is to be differentiated again.
    """
    along = torch.dot(y.reshape(-1), v.reshape(-1))
    return torch.autograd.grad(along, x, retain_graph=retain_graph, materialize_grads=True)
