"""Attention scores against torch's attention, and selectable keys against scipy's convex hulls."""

import math

import numpy as np
import pytest
import torch
from recall_recipes import move
from scipy.spatial import ConvexHull
from torch.nn import functional as F

from normscope.measure.attention import (
    first_share,
    is_selectable,
    largest_score,
    scores,
    unselectable,
    unselectable_keys,
)
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.recipe import Model

V, T, C, H = 7, 6, 12, 3
TOKENS = torch.randint(V, (2, T), generator=torch.Generator().manual_seed(1))


def transformer(**choices: str) -> Transformer:
    sizes = {"n_layer": 2, "n_head": H, "n_embd": C, "block_size": T + 1}
    torch.manual_seed(0)
    model = Transformer(Model.model_validate(sizes | choices), ARMS["rmsnorm"].norm, "pre", V)
    move(model)
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


CORNERS = np.array([[0.0, 0], [0, 2], [2, 0], [2, 2]])


def selectable(keys: np.ndarray) -> list[bool]:
    return [is_selectable(keys, i) for i in range(len(keys))]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


def vertices(keys: np.ndarray) -> list[bool]:
    return np.isin(np.arange(len(keys)), ConvexHull(keys).vertices).tolist()


def test_the_corners_of_a_square_can_be_selected_and_nothing_between_them():
    """The midpoint of an edge has at best the scores of its ends."""
    keys = np.vstack([CORNERS, [[1, 1], [0, 1]]])
    assert selectable(keys) == [True] * 4 + [False] * 2


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_keys_that_can_be_selected_are_the_vertices_of_the_convex_hull(scale):
    """Also of an affine image, which has the image of the hull."""
    points = normal(40, 3)
    expected = vertices(points)
    assert 5 < sum(expected) < 35
    assert selectable(scale * points) == expected
    assert selectable(scale * (points @ normal(3, 3) + [5.0, -1.0, 0.5])) == expected


@pytest.mark.parametrize(("arm", "placement"), [("none", "none"), ("rmsnorm", "pre")])
def test_the_share_is_over_the_inputs_of_every_attention(arm, placement):
    """Of width 2 without norms, where keys lie inside the hull; with RMSNorm on an ellipse."""
    sizes = {"n_layer": 2, "n_head": 1, "n_embd": 2, "block_size": 9}
    torch.manual_seed(0)
    model = Transformer(Model.model_validate(sizes), ARMS[arm].norm, placement, 11)
    move(model)
    model = model.double().eval()
    tokens = torch.randint(11, (3, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        x = model.token_embedding(tokens) + model.position_embedding.weight
        inputs: list[np.ndarray] = []
        for i, block in enumerate(model.blocks):
            inputs += [*model.get_submodule(f"blocks.{i}.attention.before")(x).numpy()]
            x = block(x)
    expected = 1 - np.mean([vertices(keys) for keys in inputs])
    assert unselectable(model, tokens) == pytest.approx(expected, abs=1e-12)
    assert (expected > 0.3) == (arm == "none")


def narrow(qk_norm: str) -> tuple[Transformer, torch.Tensor]:
    """A model in double precision with heads of two dimensions, and three windows of 9 tokens."""
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 4, "block_size": 9, "qk_norm": qk_norm}
    torch.manual_seed(0)
    model = Transformer(Model.model_validate(sizes), ARMS["rmsnorm"].norm, "pre", 11)
    move(model)
    return model.double().eval(), torch.randint(11, (3, 9), generator=torch.manual_seed(1))


def test_the_share_of_keys_is_over_the_heads_of_every_block():
    """Against scipy's hulls of keys that are computed by hand.

    Inputs or queries in place of keys, heads that are not separated, and a block that is left out
    are found.
    """
    model, tokens = narrow("none")
    expected = []
    with torch.no_grad():
        x = model.token_embedding(tokens) + model.position_embedding.weight
        for block in model.blocks:
            qkv = block.get_submodule("attention.f.qkv").get_parameter("weight")
            keys = block.get_submodule("attention.before")(x) @ qkv[4:8].T  # after queries
            expected += [
                vertices(k) for window in keys.numpy() for k in (window[:, :2], window[:, 2:])
            ]
            x = block(x)
    share = 1 - np.mean(expected)
    assert 0.2 < share < 0.8
    assert unselectable_keys(model, tokens) == pytest.approx(share, abs=1e-12)
