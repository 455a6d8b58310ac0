"""What is found of a norm by running it, against theory, torch and transformers."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.olmo.modeling_olmo import OlmoLayerNorm

from normscope.measure import properties
from normscope.measure.derivatives import transposed_product
from normscope.nn.arms import BUILT_IN, registry
from normscope.nn.norms import build

D = 32
ARMS = {
    name: arm.norm
    for name, arm in registry(*BUILT_IN).items()
    if not (arm.norm.embedding_scale or arm.norm.logit_scale)
}


class BiasFirst(nn.Module):
    """A LayerNorm that registers its bias before its gain."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(d))
        self.scale = nn.Parameter(torch.ones(d))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.layer_norm(x, x.shape[-1:], self.scale, self.shift)


# by arm: to what the output is invariant, and on what else it depends
THEORY = {
    "layernorm": ({"scale", "shift"}, set()),
    "rmsnorm": ({"scale", "rotation"}, set()),
    "scalenorm": ({"scale", "rotation"}, set()),
    "batchnorm": ({"scale", "shift"}, {"tokens", "batch"}),
    "dyt": (set(), set()),
    "none": ({"rotation"}, set()),
}


@pytest.mark.parametrize("arm", THEORY)
def test_invariances(arm: str):
    found = properties.invariances(build(ARMS[arm], D), D)
    unchanged = {name for name, change in found.items() if change < properties.INVARIANT}
    invariant, seen = THEORY[arm]
    assert unchanged == invariant | ({"tokens", "batch"} - seen)


def test_rounding_to_16_bits_is_not_taken_for_a_change():
    norm = Other(lambda x, eps: rms(x.bfloat16(), eps).to(x.dtype))
    found = properties.invariances(norm, D)
    hidden = {name for name, change in found.items() if math.isnan(change)}
    assert hidden == {"scale", "rotation"}  # to which RMSNorm is invariant
    assert found["shift"] > 0.1
    assert found["tokens"] == found["batch"] == 0


def test_running_a_norm_changes_neither_it_nor_the_generator():
    norm = nn.BatchNorm1d(D)
    state, random = {k: v.clone() for k, v in norm.state_dict().items()}, torch.get_rng_state()
    properties.run(nn.Sequential(nn.Flatten(0, 1), norm), properties.tokens(D))
    assert all(torch.equal(norm.state_dict()[name], value) for name, value in state.items())
    assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize("arm", [*ARMS][::4])
def test_an_arm_is_nearest_to_itself(arm: str):
    assert properties.nearest(build(ARMS[arm], D), ARMS, D) == ([arm], 0, 0, True)


class Other(nn.Module):
    """A norm from a function of tokens, with gain, bias, and eps, of which each may be learned."""

    def __init__(self, normed: Callable, gain: float = 1.0, bias: bool = False, eps: bool = False):
        super().__init__()
        self.normed = normed
        self.gain = nn.Parameter(torch.full((D,), gain))
        self.bias = nn.Parameter(torch.zeros(D)) if bias else 0
        self.eps = nn.Parameter(torch.tensor(1e-5)) if eps else 1e-5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gain * self.normed(x, self.eps) + self.bias


def rms(x: torch.Tensor, eps: float | torch.Tensor) -> torch.Tensor:
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()


def centered(x: torch.Tensor, eps: float | torch.Tensor) -> torch.Tensor:
    return rms(x - x.mean(-1, keepdim=True), eps)


def grouped(x: torch.Tensor, eps: float) -> torch.Tensor:
    return rms(x.unflatten(-1, (4, -1)), eps).flatten(-2)


@pytest.mark.parametrize(
    ("norm", "arm", "is_same", "starts"),
    [
        (BiasFirst(D), "layernorm", True, True),
        (nn.LayerNorm(D), "layernorm", True, True),
        (nn.LayerNorm(D, bias=False), "layernorm_gain", True, True),
        (nn.LayerNorm(D, elementwise_affine=False), "layernorm_plain", True, True),
        (nn.RMSNorm(D, eps=1e-5), "rmsnorm", True, True),
        (LlamaRMSNorm(D, eps=1e-5), "rmsnorm", True, True),
        (OlmoLayerNorm(D), "layernorm_plain", True, True),
        (nn.LayerNorm(D, eps=0.1), "layernorm", False, True),
        (nn.Identity(), "none", True, True),
        (Other(rms, gain=0.0), "rmsnorm", True, False),
        (build(ARMS["dyt"].model_copy(update={"alpha": 0.8}), D), "dyt", True, False),
        (Other(centered, bias=True, eps=True), "layernorm", True, None),
        (Other(rms, eps=True), "rmsnorm", True, None),
    ],
)
def test_norms_of_others_are_recognized(norm: nn.Module, arm: str, is_same: bool, starts: bool):
    found = properties.nearest(norm, ARMS, D)
    assert (found.names, found.starts) == ([arm], starts)
    assert (found.difference < properties.SAME) == is_same
    assert found.large < properties.SAME  # without eps all of these are the same


@pytest.mark.parametrize(
    ("norm", "arms"),
    [
        (Other(lambda x, eps: (rms(x, eps) + centered(x, eps)) / 2), {"rmsnorm", "layernorm_gain"}),
        (Other(grouped), {"rmsnorm"}),
        (Other(lambda x, _: x / x.abs().mean(-1, keepdim=True)), {"rmsnorm"}),
        (Other(lambda x, eps: centered(x, eps) - 0.2, bias=True), {"layernorm"}),
        (Other(lambda x, _: 0 * x), set()),
        (Other(lambda x, _: x * math.nan), set()),
        (nn.Sequential(nn.LayerNorm(D), nn.Tanh()), {"layernorm"}),
    ],
)
def test_no_norm_is_taken_for_another_one(norm: nn.Module, arms: set[str]):
    """Halfway between two norms both are named; of equal ones, that with the same parameters."""
    found = properties.nearest(norm, ARMS, D)
    assert set(found.names) == arms
    assert not min(found.difference, found.large) < 0.01


@pytest.mark.parametrize("reads", ["earlier", "later", "itself"])
def test_a_dependence_on_other_tokens_is_found(reads: str):
    class Mixed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            others = {"earlier": x.cumsum(-2), "later": x.flip(-2).cumsum(-2).flip(-2), "itself": x}
            return x + others[reads]

    found = properties.invariances(Mixed(), D)
    assert (found["tokens"] > properties.INVARIANT) == (reads != "itself")
    assert found["batch"] == 0


def test_saturation_of_a_tanh():
    # sech(u)^2 < 0.1 beyond u = acosh(sqrt(10)); alpha starts at 0.5
    edge = math.acosh(math.sqrt(10)) / 0.5
    x = torch.linspace(-8, 8, 1600, dtype=torch.float64).reshape(-1, D)
    assert properties.saturation(build(ARMS["dyt"], D), x) == pytest.approx(1 - edge / 8, abs=1e-3)


def test_singular_values_of_layernorm():
    token = properties.tokens(D)[0, 0]
    values = properties.singular_values(build(ARMS["layernorm_plain"], D).double(), token)
    sigma = (token.var(correction=0) + 1e-5).sqrt()
    assert values[:-2] == pytest.approx([float(1 / sigma)] * (D - 2), rel=1e-9)
    assert float(values[-2]) < 1e-4 / sigma  # eps leaves a little along the token
    assert float(values[-1]) < 1e-9


def test_shares_of_a_gradient_before_and_after_layernorm():
    x = properties.tokens(D).requires_grad_()
    y = build(ARMS["layernorm"], D).double()(x)
    g = 1 + x.detach() + properties.tokens(D, 1)
    (back,) = transposed_product(y, x, g)
    flat = [v.detach().flatten(0, 1) for v in (g, back, x)]
    before, after = properties.shares(flat[0], flat[2]), properties.shares(flat[1], flat[2])
    assert min(before) > 0.1
    assert after == pytest.approx((0, 0, 1), abs=1e-9)
    along = properties.shares(torch.ones(3, D), torch.ones(3, D))
    assert along == pytest.approx((1, 1, 0))
