"""Dropout with one random generator per model, so that stacked models draw as they do alone."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Generator, Tensor, nn

_GENERATORS: ContextVar[Sequence[Generator]] = ContextVar("generators of dropout masks")


@contextmanager
def drawing(generators: Sequence[Generator]) -> Iterator[None]:
    """Draw masks in the body from these generators: one per model, on the model's device."""
    token = _GENERATORS.set(generators)
    try:
        yield
    finally:
        _GENERATORS.reset(token)


def draw_seed() -> int:
    """A seed from the generator of the only model that is in training; 0 outside of trainings."""
    if (generators := _GENERATORS.get(None)) is None:
        return 0
    (generator,) = generators
    return int(torch.randint(2**62, (), generator=generator, device=generator.device))


class _Mask(torch.autograd.Function):
    """``1/(1-p)`` where an entry is kept, else 0, in the shape of ``x``; a constant."""

    @staticmethod
    def forward(x: Tensor, p: float) -> Tensor:
        (generator,) = _GENERATORS.get()
        return torch.empty_like(x).bernoulli_(1 - p, generator=generator).div_(1 - p)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None]:
        return None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Tensor, int]:
        (x, p), masks = args, []
        for model, generator in zip(x.unbind(in_dims[0]), _GENERATORS.get(), strict=True):
            with drawing([generator]):
                masks.append(_Mask.forward(model, p))
        return torch.stack(masks), 0


class Dropout(nn.Module):
    """Zeroes entries with probability ``p`` in training, and scales the others by ``1/(1-p)``.

    Srivastava et al. 2014. Like torch's layer, but with the generators of ``drawing``.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return x * _Mask.apply(x, self.p) if self.training and self.p else x
