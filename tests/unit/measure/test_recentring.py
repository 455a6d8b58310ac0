"""LayerNorm is RMSNorm of a stream without a mean, up to rounding, and only of such a stream."""

import pytest
import torch
from torch import nn

from normscope.measure.recentring import change, recentred
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model

V, T = 11, 6
TOKENS = torch.randint(V, (3, T), generator=torch.Generator().manual_seed(1))
SIZES = {"n_layer": 2, "n_head": 3, "n_embd": 12, "block_size": T}


def transformer(arm: str = "layernorm", **choices: bool) -> Transformer:
    """A model in float32 whose parameters are all random, gains and biases as well."""
    torch.manual_seed(0)
    model = Transformer(Model.model_validate(SIZES | choices), ARMS[arm].norm, "pre", V)
    for p in model.parameters():
        nn.init.normal_(p)
    return model.eval()


@pytest.mark.parametrize("choices", [{}, {"linear_bias": True, "tied_head": False}])
@pytest.mark.parametrize("arm", ["layernorm", "layernorm_plain", "layernorm_bias"])
def test_layernorms_can_be_rmsnorms(arm, choices):
    model = transformer(arm, **choices)
    before = {name: p.clone() for name, p in model.state_dict().items()}
    assert change(model, TOKENS) < 1e-12
    after = model.state_dict()
    assert all(torch.equal(after[name], p) for name, p in before.items())
    assert model.final_norm.center  # the model itself is as it was


@torch.no_grad()
def test_rmsnorms_read_a_stream_without_a_mean():
    streams = []
    model = recentred(transformer(linear_bias=True))
    for block in model.blocks:
        block.register_forward_hook(lambda _, args, output: streams.append(output))
    model(TOKENS)
    x = torch.stack(streams)
    assert float((x.mean(-1).abs() / x.std(-1)).max()) < 1e-12


@pytest.mark.parametrize(
    "name",
    [
        "token_embedding.weight",
        "position_embedding.weight",
        "blocks.0.attention.f.proj.weight",
        "blocks.1.mlp.f.proj.bias",
    ],
)
@torch.no_grad()
def test_one_matrix_or_bias_that_is_not_centered_changes_the_logits(name):
    model = transformer(linear_bias=True).double()
    wrong = recentred(model)
    wrong.get_parameter(name).copy_(model.get_parameter(name))
    logits = model(TOKENS)
    assert float((wrong(TOKENS) - logits).abs().max() / logits.abs().max()) > 1e-2
