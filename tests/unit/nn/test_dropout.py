"""Dropout: the fraction kept, its scale, and the masks of stacked models."""

import math

import pytest
import torch
from torch import Generator, Tensor
from torch.func import vmap

from normscope.nn.dropout import Dropout, drawing

SEEDS = [1, 2, 3]


def generators() -> list[Generator]:
    return [Generator().manual_seed(seed) for seed in SEEDS]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_zeroes_a_fraction_p_and_rescales_the_rest(p):
    n, layer = 200_000, Dropout(p)
    x = torch.full((n,), 3.0, requires_grad=True)
    with drawing(generators()[:1]):
        y = layer(x)
        again = layer(x)
    kept = y != 0
    torch.testing.assert_close(y[kept], torch.full_like(y[kept], 3 / (1 - p)))
    error = math.sqrt(p * (1 - p) / n)  # of a share among n
    assert float(kept.float().mean()) == pytest.approx(1 - p, abs=5 * error)
    assert float(y.detach().mean()) == pytest.approx(3, abs=5 * 3 * error / (1 - p))
    both = float((kept & (again != 0)).float().mean())  # two masks are independent
    assert both == pytest.approx((1 - p) ** 2, abs=5 * error)
    (dx,) = torch.autograd.grad(y, x, torch.arange(float(n)))
    torch.testing.assert_close(dx, torch.arange(float(n)) * y.detach() / 3)


def masks(layer: Dropout, x: Tensor) -> Tensor:
    """Of two layers one after the other, as a model has them."""
    return torch.stack([layer(x), layer(x.T).T])


def test_stacked_models_have_the_masks_that_they_draw_alone():
    layer, x = Dropout(0.3), torch.ones(3, 4, 50)
    with drawing(generators()):
        stacked = vmap(lambda part: masks(layer, part))(x)
    after = []
    for i, generator in enumerate(generators()):
        with drawing([generator]):
            assert torch.equal(masks(layer, x[i]), stacked[i])
            after.append(layer(x[i]))
    assert not any(torch.equal(stacked[i], stacked[j]) for i in range(3) for j in range(i))
    assert not any(torch.equal(after[i], stacked[i, 0]) for i in range(3))


def test_gradients_of_a_stack_are_masked():
    layer, x = Dropout(0.3), torch.randn(3, 4, 5, requires_grad=True)
    with drawing(generators()):
        y = vmap(layer)(x)
    (dx,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(dx, torch.where(y == 0, 0.0, 1 / 0.7))
