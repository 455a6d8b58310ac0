"""Where weights start: by nanoGPT's rule or Xavier's, and feedback like the weights."""

import math

import pytest
import torch
from torch import Tensor

from normscope.nn.arms import ARMS
from normscope.nn.initialization import start_std
from normscope.nn.model import Transformer
from normscope.nn.recipe import Init, Model, Placement

D, V, L = 64, 50, 3
SHAPES = {
    "attention.f.qkv": (3 * D, D),
    "attention.f.proj": (D, D),
    "mlp.f.fc": (4 * D, D),
    "mlp.f.proj": (D, 4 * D),
}
EXPECTED = {
    "gpt2": {name: 0.02 / math.sqrt(2 * L) if "proj" in name else 0.02 for name in SHAPES},
    # Glorot & Bengio 2010, eq. 16: queries, keys and values are D by D each
    "xavier": {name: math.sqrt(2 / (D + (D if "attention" in name else 4 * D))) for name in SHAPES},
}


def settings(init: Init = "gpt2", **changes) -> Model:
    sizes = {"n_layer": L, "n_head": 2, "n_embd": D, "block_size": 40, "init": init}
    return Model.model_validate(sizes | changes)


def start(
    init: Init = "gpt2",
    arm: str = "layernorm",
    placement: Placement = "pre",
    seed: int = 7,
    **changes,
) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(settings(init, **changes), ARMS[arm].norm, placement, V)


def assert_normal(weights: Tensor, std: float) -> None:
    """Mean 0 and this deviation, to 5 standard errors; as many within one as of a Gaussian."""
    z = weights.detach().double().flatten() / std
    n = len(z)
    assert abs(float(z.mean())) < 5 / math.sqrt(n)
    assert abs(float(z.square().mean()) - 1) < 5 * math.sqrt(2 / n)
    assert abs(float((z.abs() < 1).double().mean()) - 0.6827) < 5 * math.sqrt(0.22 / n)


@pytest.mark.parametrize("init", ["gpt2", "xavier"])
@pytest.mark.parametrize(("arm", "placement"), [("layernorm", "pre"), ("none", "none")])
def test_matrices_start_with_the_deviation_of_their_rule(init, arm, placement):
    model = start(init, arm, placement)
    weights = dict(model.named_parameters())
    for name, std in EXPECTED[init].items():
        for i in range(L):
            path = f"blocks.{i}.{name}.weight"
            weight = weights[path]
            assert tuple(weight.shape) == SHAPES[name]
            assert_normal(weight, std)
            assert start_std(settings(init), path, weight) == pytest.approx(std, rel=1e-15)
    for name in ("token_embedding", "position_embedding"):
        assert_normal(weights[f"{name}.weight"], 0.02)


@pytest.mark.parametrize("init", ["gpt2", "xavier"])
def test_feedback_matrices_are_drawn_like_the_weights_and_after_them(init):
    backprop, fa = (start(init, tied_head=False, feedback=f) for f in ("backprop", "fa"))
    parameters, weights = dict(backprop.named_parameters()), dict(fa.named_parameters())
    assert all(torch.equal(weights[name], p) for name, p in parameters.items())
    buffers = {n: b for n, b in fa.named_buffers() if n.endswith(".feedback")}
    assert len(buffers) == 4 * L + 1
    for name, feedback in buffers.items():
        kind = name.removesuffix(".feedback").split(".", 2)[-1]
        assert_normal(feedback, EXPECTED[init].get(kind, 0.02))
        assert not torch.equal(feedback, weights[name.replace("feedback", "weight")])
