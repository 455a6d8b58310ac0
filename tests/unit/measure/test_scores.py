"""Attention scores, compared with torch's attention and with uniform attention."""

import math

import pytest
import torch
from recall_recipes import moved
from torch.nn import functional as F

from normscope.measure.scores import first_share, largest_score, scores
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model

V, T, C, H = 7, 6, 12, 3
TOKENS = torch.randint(V, (2, T), generator=torch.Generator().manual_seed(1))


def transformer(**choices: str) -> Transformer:
    sizes = {"n_layer": 2, "n_head": H, "n_embd": C, "block_size": T + 1}
    torch.manual_seed(0)
    model = Transformer(Model.model_validate(sizes | choices), ARMS["rmsnorm"].norm, "pre", V)
    moved(model)
    return model.double().eval()


def test_without_queries_attention_is_uniform_over_the_positions_seen():
    model = transformer()
    with torch.no_grad():
        for block in model.blocks:
            block.get_parameter("attention.f.qkv.weight")[:C] = 0
    values = scores(model, TOKENS)
    assert values.shape == (2, 2 * H, T, T)
    assert largest_score(values) == 0
    assert first_share(values) == pytest.approx(sum(1 / (t + 1) for t in range(1, T)) / (T - 1))


@pytest.mark.parametrize("qk_norm", ["none", "head"])
@torch.no_grad()
def test_scores_are_those_of_torchs_attention(qk_norm):
    """With the unit vectors as values, torch's attention returns its weights."""
    model = transformer(qk_norm=qk_norm)
    x = model.token_embedding(TOKENS) + model.position_embedding.weight[:T]
    p, weights, sizes = dict(model.named_parameters()), [], []
    for i, block in enumerate(model.blocks):
        before = model.get_submodule(f"blocks.{i}.attention.before")(x)
        parts = F.linear(before, p[f"blocks.{i}.attention.f.qkv.weight"]).split(C, dim=-1)
        q, k, _ = (part.view(2, T, H, C // H).transpose(1, 2) for part in parts)
        if qk_norm == "head":
            gains = (p[f"blocks.{i}.attention.f.{name}_norm.gain"] for name in "qk")
            q, k = (
                F.rms_norm(part, (C // H,), gain, 1e-5)
                for part, gain in zip((q, k), gains, strict=True)
            )
        unit = torch.eye(T, dtype=q.dtype).expand(2, H, T, T)
        weights.append(F.scaled_dot_product_attention(q, k, unit, is_causal=True))
        seen = [(t, s) for t in range(T) for s in range(t + 1)]
        sizes += [float((q[..., t, :] * k[..., s, :]).sum(-1).abs().max()) for t, s in seen]
        x = block(x)
    values, expected = scores(model, TOKENS), torch.stack(weights)
    torch.testing.assert_close(values.softmax(-1).view(expected.shape), expected)
    assert first_share(values) == pytest.approx(float(expected[..., 1:, 0].mean()))
    assert largest_score(values) == pytest.approx(max(sizes) / math.sqrt(C // H))
