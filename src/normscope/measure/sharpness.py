"""The Hessian of a loss as an operator; its largest eigenvalue is the sharpness of the loss."""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator
from torch import Tensor


def hessian(loss: Tensor, parameters: Sequence[Tensor]) -> LinearOperator:
    """The Hessian of ``loss`` as an operator on flat vectors (p,), without the matrix itself.

    ``H v`` is the gradient of ``<gradient of the loss, v>`` (Pearlmutter 1994), exact.

    Args:
        loss: scalar, with its graph; twice differentiable.
        parameters: that it depends on, p numbers of one dtype in all.
    """
    gradient = torch.autograd.grad(loss, parameters, create_graph=True)
    sizes = [p.numel() for p in parameters]
    dtype = parameters[0].dtype

    def product(v: np.ndarray) -> np.ndarray:
        parts = torch.from_numpy(np.ascontiguousarray(v).reshape(-1)).to(parameters[0]).split(sizes)
        along = [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]
        columns = torch.autograd.grad(
            gradient, parameters, along, retain_graph=True, materialize_grads=True
        )
        return torch.cat([c.reshape(-1) for c in columns]).cpu().numpy()

    n = sum(sizes)
    return LinearOperator((n, n), matvec=product, dtype=torch.empty(0, dtype=dtype).numpy().dtype)
