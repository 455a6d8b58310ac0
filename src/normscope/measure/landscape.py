"""Slices through a loss: parameters moved along a line, and put back bit for bit.

Two kinds of direction: one random unit vector over all parameters, and filter-normalized ones
(Li et al. 2018, arXiv:1712.09913, section 4), in which every row of a matrix is as long as the row
that it perturbs, so that slices of models with weights of other scales can be compared.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

Direction = list[Tensor]


@contextmanager
def restoring(model: nn.Module) -> Iterator[None]:
    """Put every parameter and buffer back bit for bit, whatever the body does to them."""
    tensors = [*model.parameters(), *model.buffers()]
    kept = [t.detach().clone() for t in tensors]
    try:
        yield
    finally:
        with torch.no_grad():
            for t, was in zip(tensors, kept, strict=True):
                t.copy_(was)


def unit_direction(model: nn.Module, g: torch.Generator) -> Direction:
    """A Gaussian direction over all parameters together, of Euclidean norm 1."""
    direction = _gaussian(model, g)
    norm = torch.sqrt(sum((d.square().sum() for d in direction), direction[0].new_zeros(())))
    return [d / norm for d in direction]


def filter_normalized_direction(model: nn.Module, g: torch.Generator) -> Direction:
    """A Gaussian direction whose rows have the norms of the rows of the parameters.

    A row is what makes one output of a layer, or one embedding. As in the source, parameters with
    fewer than two dimensions (biases, gains) are not moved.
    """
    return [
        d * p.detach().norm(dim=1, keepdim=True) / d.norm(dim=1, keepdim=True)
        if p.dim() > 1
        else torch.zeros_like(p)
        for d, p in zip(_gaussian(model, g), model.parameters(), strict=True)
    ]


def _gaussian(model: nn.Module, g: torch.Generator) -> Direction:
    """One draw for each parameter that every norm has alike, then for the others.

    Matrices are what arms share; their draws come first, so that arms with other gains and biases
    still share them. Drawn on the CPU, so that they are the same on every device.
    """
    parameters = list(model.parameters())
    matrices_first = sorted(range(len(parameters)), key=lambda i: parameters[i].dim() < 2)
    draws = {i: torch.randn(parameters[i].shape, generator=g) for i in matrices_first}
    return [draws[i].to(p.device) for i, p in enumerate(parameters)]


def slice_loss(
    model: nn.Module, loss: Callable[[], float], direction: Direction, offsets: Sequence[float]
) -> list[float]:
    """``loss()`` at ``parameters + offset * direction`` for every offset, each from the start."""
    parameters = list(model.parameters())
    start = [p.detach().clone() for p in parameters]
    losses = []
    with restoring(model), torch.no_grad():
        for offset in offsets:
            for p, p0, d in zip(parameters, start, direction, strict=True):
                torch.add(p0, d, alpha=offset, out=p)
            losses.append(loss())
    return losses


def accumulating_slice(
    model: nn.Module, loss: Callable[[], float], direction: Direction, alphas: Sequence[float]
) -> list[float]:
    """The notebook's slice: ``parameters += alpha * direction`` for every alpha, never restored.

    The k-th loss is at the offset ``sum(alphas[: k + 1])``, not at ``alphas[k]``. The model is
    restored only at the end.
    """
    losses = []
    with restoring(model), torch.no_grad():
        for alpha in alphas:
            for p, d in zip(model.parameters(), direction, strict=True):
                p.add_(alpha * d)
            losses.append(loss())
    return losses
