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

    It is the gradient of the number ``<y, v>``. torch's own way to say v, ``grad_outputs``, gives
    the same bits, but loads sympy to compare shapes, which takes a process 2 s.

    Args:
        y: with its graph.
        x: what to differentiate by.
        v: of as many numbers as y, in its order.
        retain_graph: y is to be differentiated again.
    """
    along = torch.dot(y.reshape(-1), v.reshape(-1))
    return torch.autograd.grad(along, x, retain_graph=retain_graph, materialize_grads=True)
