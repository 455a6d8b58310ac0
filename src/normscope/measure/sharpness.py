"""The Hessian of a loss as an operator; its largest eigenvalue is the sharpness of the loss.

With a diagonal preconditioner it is the sharpness that an adaptive optimizer meets.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from normscope.measure.lanczos import Operator
from normscope.measure.products import transposed_product


def hessian(loss: Tensor, parameters: Sequence[Tensor]) -> Operator:
    """The Hessian of ``loss`` as an operator on flat vectors (p,), without the matrix itself.

    ``H v`` is the gradient of ``<gradient of the loss, v>`` (Pearlmutter 1994), exact. The graph of
    the gradient is made once for all products.

    Args:
        loss: scalar, with its graph; twice differentiable.
        parameters: that it depends on, p numbers of one dtype in all.
    """
    gradient = _flat(torch.autograd.grad(loss, parameters, create_graph=True))

    def product(v: Tensor) -> Tensor:
        return _flat(transposed_product(gradient, parameters, v, retain_graph=True))

    return Operator(product, gradient.detach())


def preconditioned(h: Operator, p: Tensor) -> Operator:
    """``P^-1/2 H P^-1/2``, symmetric, with the eigenvalues of ``P^-1 H``.

    Of Adam's preconditioner it does not depend on the unit of any parameter: one that is written as
    c times another has c times its gradient, and c^2 times its curvature.

    Args:
        h: the operator H on vectors (n,).
        p: diagonal of P, positive, (n,).
    """
    root = p.to(h.like).rsqrt()
    return Operator(lambda v: root * h.product(root * v), h.like)


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.reshape(-1) for t in tensors])
