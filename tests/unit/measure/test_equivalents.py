"""Folded gains against a Transformer of torch's functions, and LayerNorms that become RMSNorms."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.measure.equivalents import center_stream, fold_norms, logit_change
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model

V, T, C, H, LAYERS = 11, 6, 12, 3, 2
TOKENS = torch.randint(V, (3, T), generator=torch.Generator().manual_seed(1))


def transformer(arm: str, **choices: bool) -> Transformer:
    """A model whose parameters are all random, gains and biases as well."""
    torch.manual_seed(0)
    sizes = {"n_layer": LAYERS, "n_head": H, "n_embd": C, "block_size": T}
    model = Transformer(Model.model_validate(sizes | choices), ARMS[arm].norm, "pre", V)
    for p in model.parameters():
        nn.init.normal_(p)
    return model.eval().double()


def plain(x: Tensor, arm: str) -> Tensor:
    """LayerNorm or RMSNorm without gain and bias."""
    return F.layer_norm(x, (C,)) if "layernorm" in arm else F.rms_norm(x, (C,), eps=1e-5)


def logits_without_gains(model: Transformer, arm: str, head: Tensor | None = None) -> Tensor:
    """The logits of a model of plain norms, with matrices that have taken the gains and biases.

    Args:
        head: of the tokens after a plain final norm; by default the final norm keeps its gain.
    """
    p = dict(model.named_parameters())

    def applied(x: Tensor, norm: str, linear: str) -> Tensor:
        weight, gain = p[f"{linear}.weight"], p[f"{norm}.gain"]
        bias = p.get(f"{linear}.bias", torch.zeros(len(weight), dtype=x.dtype))
        if f"{norm}.bias" in p:
            bias = bias + weight @ p[f"{norm}.bias"]
        return F.linear(plain(x, arm), weight * gain, bias)

    x = F.embedding(TOKENS, p["token_embedding.weight"]) + p["position_embedding.weight"]
    for i in range(LAYERS):
        at, mlp = f"blocks.{i}.attention", f"blocks.{i}.mlp"
        q, k, v = (
            part.view(len(x), T, H, C // H).transpose(1, 2)
            for part in applied(x, f"{at}.before", f"{at}.f.qkv").split(C, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(len(x), T, C)
        x = x + F.linear(y, p[f"{at}.f.proj.weight"], p.get(f"{at}.f.proj.bias"))
        y = F.gelu(applied(x, f"{mlp}.before", f"{mlp}.f.fc"))
        x = x + F.linear(y, p[f"{mlp}.f.proj.weight"], p.get(f"{mlp}.f.proj.bias"))
    if head is not None:
        return F.linear(plain(x, arm), head)
    y = plain(x, arm) * p["final_norm.gain"] + p.get("final_norm.bias", 0)
    return F.linear(y, p["token_embedding.weight" if model.head is None else "head.weight"])


@pytest.mark.parametrize("choices", [{}, {"linear_bias": True, "tied_head": False}])
@pytest.mark.parametrize("arm", ["rmsnorm", "layernorm", "layernorm_gain"])
def test_block_norms_without_gain_give_the_same_logits(arm, choices):
    model = transformer(arm, **choices)
    with torch.no_grad():
        expected = logits_without_gains(model, arm)
        torch.testing.assert_close(model(TOKENS), expected, rtol=1e-10, atol=1e-10)
        less = fold_norms(model)
        torch.testing.assert_close(less(TOKENS), expected, rtol=1e-10, atol=1e-10)
    names = [name for name, _ in less.named_parameters()]
    assert [n for n in names if n.endswith((".before.gain", ".before.bias"))] == []
    assert "final_norm.gain" in names
    for final in (False, True):
        assert logit_change(model, fold_norms(model, final=final), TOKENS) < 1e-12
    assert isinstance(model.final_norm.gain, Tensor)  # the model itself is as it was


def test_the_final_gain_needs_a_head_of_its_own():
    """Folded into the matrix that is the embedding as well, it changes the logits."""
    arm = "rmsnorm"
    model = transformer(arm)
    with torch.no_grad():
        head = model.token_embedding.weight * dict(model.named_parameters())["final_norm.gain"]
        expected = model(TOKENS)
        torch.testing.assert_close(logits_without_gains(model, arm, head), expected)
        model.token_embedding.weight.copy_(head)
        tied = logits_without_gains(model, arm, model.token_embedding.weight)
    assert float((tied - expected).abs().max() / expected.abs().max()) > 0.1


@pytest.mark.parametrize("choices", [{}, {"linear_bias": True, "tied_head": False}])
@pytest.mark.parametrize("arm", ["layernorm", "layernorm_plain", "layernorm_bias"])
def test_layernorms_can_be_rmsnorms(arm, choices):
    model = transformer(arm, **choices).float()
    before = {name: p.clone() for name, p in model.state_dict().items()}
    assert logit_change(model, center_stream(model), TOKENS) < 1e-12
    after = model.state_dict()
    assert all(torch.equal(after[name], p) for name, p in before.items())
    assert model.final_norm.center  # the model itself is as it was


@torch.no_grad()
def test_rmsnorms_read_a_stream_without_a_mean():
    streams = []
    model = center_stream(transformer("layernorm", linear_bias=True))
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
    model = transformer("layernorm", linear_bias=True)
    wrong = center_stream(model)
    wrong.get_parameter(name).copy_(model.get_parameter(name))
    logits = model(TOKENS)
    assert float((wrong(TOKENS) - logits).abs().max() / logits.abs().max()) > 1e-2
