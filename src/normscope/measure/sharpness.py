"""The Hessian of a loss as an operator; its largest eigenvalue is the sharpness of the loss."""

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


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.reshape(-1) for t in tensors])
