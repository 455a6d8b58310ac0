"""Blocks that are left out, compared with models that were built without them."""

import copy

import pytest
import torch
from depth_recipes import tokens, transformer
from recall_recipes import moved
from torch import nn

from normscope.measure.skipping import added_losses
from normscope.nn.model import cross_entropy

X, Y = tokens(1), tokens(2)


@pytest.mark.parametrize(("arm", "placement"), [("layernorm", "pre"), ("batchnorm", "post")])
@torch.no_grad()
def test_the_added_loss_is_that_of_the_model_without_the_block(arm, placement):
    model = transformer(arm, placement, n_layer=3).eval()
    moved(model)
    logits = model(X)
    added = added_losses(model, X, Y)
    for i, loss in enumerate(added):
        without = copy.deepcopy(model)
        without.blocks = nn.ModuleList(b for j, b in enumerate(without.blocks) if j != i)
        expected = cross_entropy(without(X), Y) - cross_entropy(logits, Y)
        assert loss == pytest.approx(float(expected), abs=1e-6)
    assert min(map(abs, added)) > 1e-3
    assert torch.equal(model(X), logits)  # no block is left out any more


@pytest.mark.parametrize("placement", ["pre", "peri"])
@torch.no_grad()
def test_a_block_that_adds_nothing_to_the_stream_adds_nothing_to_the_loss(placement):
    model = transformer("rmsnorm", placement).eval()
    moved(model)
    for branch in ("attention", "mlp"):
        model.get_parameter(f"blocks.1.{branch}.f.proj.weight").zero_()
    first, second = added_losses(model, X, Y)
    assert first != 0
    assert second == 0
