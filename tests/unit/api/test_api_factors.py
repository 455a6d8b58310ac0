"""``factors`` of arms, of layers and of other modules: their output, or one line why not."""

import copy
import math
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from recall_recipes import move
from recipes import examples
from torch import Tensor, nn
from torch.nn import functional as F

import normscope
from normscope.nn.arms import ARMS
from normscope.nn.norms import build
from normscope.nn.recipe import Norm

D = 12  # float32 does not hold its root
TOKEN_WISE = [name for name, arm in ARMS.items() if arm.norm.statistic == "token"]
T5LayerNorm = transformers.models.t5.modeling_t5.T5LayerNorm
LlamaRMSNorm = transformers.models.llama.modeling_llama.LlamaRMSNorm
GemmaRMSNorm = transformers.models.gemma.modeling_gemma.GemmaRMSNorm


class NoisyRMSNorm(nn.RMSNorm):
    """Draws random numbers, and counts its calls."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        torch.rand(3)
        return super().forward(x)


class NamedEpsRMSNorm(nn.Module):
    """An RMSNorm whose eps has another name, and which returns a tuple."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.norm_eps = eps

    def forward(self, x: Tensor) -> tuple[Tensor, str]:
        return x / (x.square().mean(-1, keepdim=True) + self.norm_eps).sqrt(), ""


class Named(nn.LayerNorm):
    """A LayerNorm whose parameters have other names, in this order."""

    gamma: Tensor
    beta: Tensor

    def __init__(self, d: int, eps: float, *names: str) -> None:
        super().__init__(d, eps=eps, elementwise_affine=False)
        for name in names:
            self.register_parameter(name, nn.Parameter(torch.ones(d)))

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.gamma, self.beta, self.eps)


class CenteringRMSNorm(nn.LayerNorm):
    """A norm whose name does not say what it does."""


class InPlaceRMSNorm(nn.Module):
    """Writes its output over its input."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return x.mul_((x.square().mean(-1, keepdim=True) + self.eps).rsqrt())


class PairedRMSNorm(nn.Module):
    """Takes two arguments."""

    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:]) * scale


def of_registry(radius: Any) -> Any:
    return lambda d, eps: build(Norm(center=d % 2 == 0, radius=radius, gain=True, eps=eps), d)


LAYERS: dict[str, Any] = {
    "LayerNorm": lambda d, eps: nn.LayerNorm(d, eps=eps),
    "LayerNorm, plain": lambda d, eps: nn.LayerNorm(d, eps=eps, elementwise_affine=False),
    "LayerNorm, no bias": lambda d, eps: nn.LayerNorm(d, eps=eps, bias=False),
    "RMSNorm": lambda d, eps: nn.RMSNorm(d, eps=eps),
    "RMSNorm, plain": lambda d, eps: nn.RMSNorm(d, eps=eps, elementwise_affine=False),
    "RMSNorm, no eps": lambda d, eps: nn.RMSNorm(d),
    "NoisyRMSNorm": lambda d, eps: NoisyRMSNorm(d, eps=eps),
    "InPlaceRMSNorm": lambda d, eps: InPlaceRMSNorm(eps),
    "NamedEpsRMSNorm": lambda d, eps: NamedEpsRMSNorm(eps),
    "gamma, beta": lambda d, eps: Named(d, eps, "gamma", "beta"),
    "beta, gamma": lambda d, eps: Named(d, eps, "beta", "gamma"),
    "frozen": lambda d, eps: nn.LayerNorm(d, eps=eps).requires_grad_(False),
    **{radius: of_registry(radius) for radius in ("1", "sqrt(d)", "learned")},
}


def state(module: nn.Module) -> dict[str, Any]:
    """All that a call can change in a module."""
    attributes: dict[str, Any] = {}
    for name, m in module.named_modules():
        attributes |= {
            f"{name}.{k}": copy.copy(v)
            for k, v in vars(m).items()
            if k not in ("_parameters", "_buffers")
        }
    tensors = {k: v.detach().clone() for k, v in module.state_dict().items()}
    return {"attributes": attributes, "tensors": tensors, "random": torch.get_rng_state()}


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert before["attributes"] == after["attributes"]
    assert before["tensors"].keys() == after["tensors"].keys()
    for name, t in before["tensors"].items():
        assert t.is_meta or torch.equal(t.nan_to_num(), after["tensors"][name].nan_to_num())
    assert torch.equal(before["random"], after["random"])


@given(
    name=st.sampled_from([*LAYERS]),
    d=st.integers(2, 9),
    shape=st.lists(st.integers(0, 3), max_size=3),
    eps=st.sampled_from([0.0, 1e-12, 1e-5, 1.0]),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
    mean=st.sampled_from([0.0, 1.0, 1e4]),
    seed=st.integers(0, 99),
    training=st.booleans(),
)
@examples(100)
def test_the_factors_of_a_layer_make_its_output_and_do_not_change_it(
    *, name, d, shape, eps, size, mean, seed, training
):
    if name in ("1", "sqrt(d)", "learned"):
        eps = max(eps, 1e-12)  # the registry has no eps of 0
    layer = move(LAYERS[name](d, eps).double().train(training), seed)
    calls: list[int] = []
    layer.register_forward_hook(lambda *_: calls.append(1))
    g = torch.Generator().manual_seed(seed)
    x = size * torch.randn(*shape, d, generator=g, dtype=torch.float64) + mean
    given, before = x.clone(), state(layer)
    parts = normscope.factors(layer, x)
    assert_same(before, state(layer))
    assert calls == []
    assert torch.equal(x, given)
    y = layer(x.clone())
    y = y[0] if isinstance(y, tuple) else y
    torch.testing.assert_close(parts.output, y.detach(), rtol=1e-6, atol=1e-6)
    centers = isinstance(layer, nn.LayerNorm) or getattr(layer, "center", False)
    u = x - x.mean(-1, keepdim=True) if centers else x
    torch.testing.assert_close(parts.centered, u, rtol=1e-9, atol=1e-9)
    radius = {"1": 1.0, "learned": getattr(layer, "g", None)}.get(name, math.sqrt(d))
    assert float(parts.radius) == pytest.approx(float(torch.as_tensor(radius).detach()))
    length = parts.projected.norm(dim=-1)
    assert (length < 1 + 1e-9).all()
    if eps < 1e-6 and size >= 1 and name != "RMSNorm, no eps":
        torch.testing.assert_close(length, torch.ones_like(length), rtol=0, atol=1e-5)


@pytest.mark.parametrize("arm", TOKEN_WISE)
def test_the_parts_of_an_arm_are_what_their_names_say(arm):
    g = torch.Generator().manual_seed(0)
    x = 2 * torch.randn(5, 3, D, generator=g, dtype=torch.float64) + 1
    norm, parts = ARMS[arm].norm, normscope.factors(arm, x)
    u = x - x.mean(-1, keepdim=True) if norm.center else x
    learned = norm.radius == "learned"  # a parameter, in float32
    radius = 1.0 if norm.radius == "1" or norm.log_rate else math.sqrt(D)
    torch.testing.assert_close(parts.centered, u)
    torch.testing.assert_close(parts.projected, F.normalize(u, dim=-1), rtol=0, atol=1e-5)
    assert float(parts.radius) == pytest.approx(radius, rel=1e-7 if learned else 1e-15)
    # an arm begins with a gain of 1 and a bias of 0
    torch.testing.assert_close(parts.output, radius * F.normalize(u, dim=-1), rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("mean", [0.0, 1e4])
@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm, LlamaRMSNorm, GemmaRMSNorm])
def test_a_large_mean_does_not_make_a_norm_another(kind, mean, dtype):
    """In float32 the rounding of such inputs is larger than any fixed tolerance."""
    layer = move(kind(D)).to(dtype)
    x = (torch.randn(5, D, generator=torch.Generator().manual_seed(0)) + mean).to(dtype)
    parts = normscope.factors(layer, x)
    weight = layer.get_parameter("weight").detach()
    assert torch.equal(parts.gain, 1 + weight if kind is GemmaRMSNorm else weight)
    u = x.double() - x.double().mean(-1, keepdim=True) * (kind is nn.LayerNorm)
    assert torch.equal(parts.centered, u.to(dtype))


@pytest.mark.parametrize(
    "kind", [LlamaRMSNorm, T5LayerNorm, nn.LayerNorm, nn.RMSNorm, CenteringRMSNorm]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_inputs_of_mean_0_do_not_hide_whether_a_layer_centers(kind, dtype):
    x = torch.tensor([[[1.0, -1.0, 2.0, -2.0]], [[1.0, 1.0, -1.0, -1.0]]]).to(dtype)
    x = x.repeat(1, 1, 256)  # random tokens of so many channels have a mean of about 0, too
    layer = kind(1024).to(dtype)
    centers = torch.allclose(layer(x), layer(x + 1), atol=0.1)  # a centering layer ignores a mean
    assert torch.equal(normscope.factors(layer, x).centered, x)
    watched = nn.Sequential(nn.Identity(), layer)
    random = torch.get_rng_state()
    with normscope.watch(watched) as norms:
        (watched(x.requires_grad_()) * (x + 1)).sum().backward()
    assert torch.equal(torch.get_rng_state(), random)
    (row,) = norms.table().to_dict("records")
    assert row["center"] == centers
    # dy = x + 1 has the mean 1, so that its share is 1 / (1 + <x^2>) per token: 1/3.5 and 1/2
    assert row["r_mean"] == pytest.approx((1 / 3.5 + 1 / 2) / 2 if centers else 0.0, rel=1e-3)


X = torch.arange(12.0).reshape(2, 6) ** 2 + 1


def not_finite(layer: nn.Module) -> nn.Module:
    nn.init.constant_(layer.get_parameter("weight"), math.nan)
    return layer


@pytest.mark.parametrize(
    ("norm", "x", "words"),
    [
        ("layer_norm", X, r"did you mean layernorm\?"),
        ("batchnorm", X, "batchnorm"),
        ("dyt", X, "dyt"),
        (3, X, "norm is of type int"),
        (nn.Linear(6, 6), X, "Linear does not compute a norm"),
        (nn.BatchNorm1d(6), X, "BatchNorm1d"),
        (nn.Sequential(nn.LayerNorm(6), nn.Dropout(0.5)), X, "Sequential"),
        (build(ARMS["layernorm"].norm, 5), X, "TokenNorm fails on x"),
        (nn.LayerNorm(6, device="meta"), X, "LayerNorm"),
        (nn.LayerNorm(6).double(), X, "LayerNorm"),
        (nn.LayerNorm([2, 6]), X, "LayerNorm fails on x"),
        (PairedRMSNorm(), X, "PairedRMSNorm fails on x"),
        (not_finite(nn.LayerNorm(6)), X, "the output of LayerNorm is not finite"),
        *(
            (norm, x, words)
            for norm in ("layernorm", nn.LayerNorm(6))
            for x, words in (
                ([1.0], "x is of type list"),
                (X[:, :0], r"\(2, 0\) on cpu: give floating-point"),
                (torch.tensor(1.0), r"shape \(\) on cpu: give"),
                (X.long(), "torch.int64"),
                (X * math.nan, "not finite"),
                (X.to("meta"), "on meta: give floating-point"),
            )
        ),
    ],
)
def test_what_has_no_factors_is_an_error_of_one_line(norm, x, words):
    before = state(norm) if isinstance(norm, nn.Module) else None
    with pytest.raises(normscope.Explained, match=words) as error:
        normscope.factors(norm, x)
    assert "\n" not in str(error.value)
    if before is not None:
        assert_same(before, state(norm))


@pytest.mark.parametrize("norm", ["rmsnorm", nn.LayerNorm(D), LlamaRMSNorm(D)])
def test_a_transform_of_torch_func_around_it_is_an_error(norm):
    def output(x: Tensor) -> Tensor:
        return normscope.factors(norm, x).output.sum()

    for transform in (torch.func.vmap, torch.func.grad, torch.func.jacrev):
        with pytest.raises(normscope.Explained, match=r"torch\.func .*call factors outside of it"):
            transform(output)(torch.ones(2, D))
