"""Untrained networks by depth, and blocks that are left out, against models without them."""

import copy
import math
from typing import Any

import pytest
import torch
from depth_recipes import tokens, transformer
from recall_recipes import move
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.measure import depth
from normscope.measure.depth import (
    added_losses,
    collapse_rate,
    last_gradient,
    output_change,
    spread,
)
from normscope.nn.arms import ARMS
from normscope.nn.model import cross_entropy
from normscope.nn.recipe import Model

X, Y = tokens(1), tokens(2)
T, C = 8, 256


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def model(**choices: Any) -> Model:
    sizes = {"n_layer": 1, "n_head": 1, "n_embd": C, "block_size": T}
    return Model.model_validate(sizes | choices)


def inputs(size: float = 1.0) -> Tensor:
    return size * torch.randn(2, T, C, generator=generator())


def test_tokens_are_apart_by_what_is_left_without_their_mean():
    """Of T orthonormal tokens, the mean has 1 / T of the energy; equal tokens are their mean."""
    unit = torch.eye(T).expand(3, T, T)
    assert spread(unit) == pytest.approx(math.sqrt(1 - 1 / T))
    assert spread(7 * unit) == pytest.approx(math.sqrt(1 - 1 / T))
    assert spread(torch.ones(3, T, 2)) == 0


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_change_of_the_parameters_is_squared(placement, monkeypatch):
    net, changes = transformer(placement=placement), []
    for relative in (1e-6, 1e-5):
        monkeypatch.setattr(depth, "RELATIVE", relative)
        changes.append(output_change(net, X, generator()))
    assert changes[1] / changes[0] == pytest.approx(100, rel=1e-3)


@torch.no_grad()
def test_an_output_that_is_the_embedding_changes_by_as_much_as_its_parameters():
    """Token and position vectors are independent of each other, and of their changes."""
    net = transformer("none", "none")
    net.token_embedding.weight = torch.nn.Parameter(torch.randn(7, 4096, dtype=torch.float64))
    net.position_embedding.weight = torch.nn.Parameter(torch.randn(5, 4096, dtype=torch.float64))
    net.blocks = torch.nn.ModuleList()
    expected = depth.RELATIVE**2
    assert output_change(net, X, generator()) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_last_gradient_is_the_slope_of_the_loss_in_its_direction(placement):
    """A central difference of the loss along the gradient that backward leaves."""
    net = transformer(placement=placement)
    ours = last_gradient(net, X, Y)
    cross_entropy(net(X), Y).backward()
    weight = net.blocks[-1].get_parameter("mlp.f.proj.weight")
    assert weight.grad is not None
    step = weight.grad / weight.grad.norm()
    losses = []
    with torch.no_grad():
        for sign in (1, -2):
            weight.add_(0.05 * sign * step)
            losses.append(cross_entropy(net(X).double(), Y).item())
    assert ours == pytest.approx(float(weight.grad.norm()), rel=1e-9)
    assert ours == pytest.approx((losses[0] - losses[1]) / 0.1, rel=1e-2)


@pytest.mark.parametrize("arm", ["none", "rmsnorm"])
def test_causal_attention_without_scores_is_a_running_mean(arm):
    """Inputs so small that all scores are near 0; a random matrix leaves ratios of norms."""
    x = inputs(0.05)
    torch.manual_seed(0)
    rate = collapse_rate(ARMS[arm].norm, model(), x)
    means = x.cumsum(1) / torch.arange(1, T + 1).view(T, 1)
    after = means if arm == "none" else F.rms_norm(means, (C,))
    assert rate == pytest.approx(math.log(spread(after) / spread(x)), abs=0.03)


@pytest.mark.parametrize(("arm", "placement"), [("layernorm", "pre"), ("batchnorm", "post")])
@torch.no_grad()
def test_the_added_loss_is_that_of_the_model_without_the_block(arm, placement):
    model = transformer(arm, placement, n_layer=3).eval()
    move(model)
    logits = model(X)
    added = added_losses(model, X, Y)
    for i, loss in enumerate(added):
        without = copy.deepcopy(model)
        without.blocks = nn.ModuleList(b for j, b in enumerate(without.blocks) if j != i)
        expected = cross_entropy(without(X), Y) - cross_entropy(logits, Y)
        assert loss == pytest.approx(float(expected), abs=1e-6)
    assert min(map(abs, added)) > 1e-3
    assert torch.equal(model(X), logits)  # no block is left out any more
