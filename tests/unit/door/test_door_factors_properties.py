"""``factors`` of drawn layers, and of other modules: their output, or one line why not."""

import copy
import math
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from recall_recipes import moved
from torch import Tensor, nn

import normscope
from normscope.door.factors import Factors
from normscope.nn.arms import ARMS
from normscope.nn.norms import build
from normscope.nn.recipe import Norm

LlamaRMSNorm = transformers.models.llama.modeling_llama.LlamaRMSNorm
GemmaRMSNorm = transformers.models.gemma.modeling_gemma.GemmaRMSNorm


class NoisyRMSNorm(nn.RMSNorm):
    """Draws random numbers, and counts its calls."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        torch.rand(3)
        return super().forward(x)


class InPlaceRMSNorm(nn.Module):
    """Writes its output over its input."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mul_((x.square().mean(-1, keepdim=True) + 1e-9).rsqrt())


def of_registry(radius: Any) -> Any:
    return lambda d, eps: build(Norm(center=d % 2 == 0, radius=radius, gain=True, eps=eps), d)


LAYERS: dict[str, Any] = {
    "LayerNorm": lambda d, eps: nn.LayerNorm(d, eps=eps),
    "LayerNorm, plain": lambda d, eps: nn.LayerNorm(d, eps=eps, elementwise_affine=False),
    "LayerNorm, no bias": lambda d, eps: nn.LayerNorm(d, eps=eps, bias=False),
    "RMSNorm": lambda d, eps: nn.RMSNorm(d, eps=eps),
    "RMSNorm, plain": lambda d, eps: nn.RMSNorm(d, eps=eps, elementwise_affine=False),
    "NoisyRMSNorm": lambda d, eps: NoisyRMSNorm(d, eps=eps),
    **{radius: of_registry(radius) for radius in ("1", "sqrt(d)", "learned")},
}


def state(module: nn.Module) -> dict[str, Any]:
    """All that a call can change in a module."""
    found: dict[str, Any] = {}
    for name, m in module.named_modules():
        found |= {f"{name}.{k}": copy.copy(v) for k, v in vars(m).items()}
    tensors = {k: v.detach().clone() for k, v in module.state_dict().items()}
    return {"modules": found, "tensors": tensors, "random": torch.get_rng_state()}


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    first, then = before["tensors"], after["tensors"]
    assert first.keys() == then.keys()
    assert all(t.is_meta or torch.equal(t, then[k]) for k, t in first.items())
    assert torch.equal(before["random"], after["random"])
    skipped = ("_parameters", "_buffers")
    kept = [k for k in before["modules"] if not k.endswith(skipped)]
    assert {k: before["modules"][k] for k in kept} == {k: after["modules"][k] for k in kept}


@given(
    name=st.sampled_from([*LAYERS]),
    d=st.integers(2, 9),
    shape=st.lists(st.integers(0, 3), max_size=3),
    eps=st.sampled_from([1e-12, 1e-5, 1.0]),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
    mean=st.sampled_from([0.0, 1.0, 1e4]),
    seed=st.integers(0, 99),
    training=st.booleans(),
)
@examples(60)
def test_the_factors_of_a_layer_make_its_output_and_do_not_change_it(
    *, name, d, shape, eps, size, mean, seed, training
):
    layer = moved(LAYERS[name](d, eps).double().train(training), seed)
    calls: list[int] = []
    layer.register_forward_hook(lambda *_: calls.append(1))
    g = torch.Generator().manual_seed(seed)
    x = size * torch.randn(*shape, d, generator=g, dtype=torch.float64) + mean
    given, before = x.clone(), state(layer)
    if name == "NoisyRMSNorm" and not x.numel():  # only torch's own class tells without tokens
        with pytest.raises(normscope.Explained, match="zero or constant"):
            normscope.factors(layer, x)
        return
    parts = normscope.factors(layer, x)
    assert_same(before, state(layer))
    assert calls == []
    assert torch.equal(x, given)
    torch.testing.assert_close(parts.output, layer(x).detach(), rtol=1e-7, atol=1e-7)
    centers = isinstance(layer, nn.LayerNorm) or getattr(layer, "center", False)
    u = x - x.mean(-1, keepdim=True) if centers else x
    torch.testing.assert_close(parts.centered, u, rtol=1e-9, atol=1e-9)
    radius = {"1": 1.0, "learned": getattr(layer, "g", None)}.get(name, math.sqrt(d))
    assert float(parts.radius) == pytest.approx(float(torch.as_tensor(radius).detach()))
    length = parts.projected.norm(dim=-1)
    assert (length < 1 + 1e-9).all()
    if eps < 1e-6 and size >= 1:
        torch.testing.assert_close(length, torch.ones_like(length), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("mean", [0.0, 1e2, 1e4])
@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm, LlamaRMSNorm, GemmaRMSNorm])
def test_a_large_mean_does_not_make_a_norm_another(kind, mean, dtype):
    """In float32 the rounding of such inputs is larger than any fixed tolerance."""
    layer = moved(kind(12)).to(dtype)
    x = (torch.randn(5, 12, generator=torch.Generator().manual_seed(0)) + mean).to(dtype)
    parts = normscope.factors(layer, x)
    weight = layer.get_parameter("weight").detach()
    assert torch.equal(parts.gain, 1 + weight if kind is GemmaRMSNorm else weight)
    u = x.double() - x.double().mean(-1, keepdim=True) * (kind is nn.LayerNorm)
    assert torch.equal(parts.centered, u.to(dtype))


def outcome(module: nn.Module, x: Tensor) -> Factors | str:
    """The factors, or the error's words."""
    try:
        return normscope.factors(module, x)
    except normscope.Explained as e:
        return str(e)


class Tuple(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, str]:
        return x / x.square().mean(-1, keepdim=True).sqrt(), ""


X = torch.arange(12.0).reshape(2, 6) ** 2 + 1
MODULES: dict[str, Any] = {
    "Linear": lambda: nn.Linear(6, 6),
    "narrow": lambda: nn.Linear(6, 2),
    "BatchNorm1d": lambda: nn.BatchNorm1d(6),
    "Embedding": lambda: nn.Embedding(6, 6),
    "LSTM": lambda: nn.LSTM(6, 6),
    "Identity": nn.Identity,
    "Dropout": nn.Dropout,
    "Sequential": lambda: nn.Sequential(nn.LayerNorm(6), nn.Dropout(0.5)),
    "abstract": nn.Module,
    "other d": lambda: nn.LayerNorm(5),
    "other d, llama": lambda: LlamaRMSNorm(5),
    "other d, registry": lambda: build(ARMS["rmsnorm"].norm, 5),
    "other d, registry, plain": lambda: build(Norm(radius="1"), 5),
    "one weight": lambda: LlamaRMSNorm(1),
    "two dimensions": lambda: nn.LayerNorm([2, 6]),
    "tuple": Tuple,
    "in place": InPlaceRMSNorm,
    "compiled": lambda: torch.compile(nn.LayerNorm(6), backend="eager"),
    "meta": lambda: nn.LayerNorm(6, device="meta"),
    "meta, registry": lambda: build(ARMS["rmsnorm"].norm, 6).to("meta"),
    "double": lambda: nn.LayerNorm(6).double(),
    "GroupNorm": lambda: nn.GroupNorm(1, 6),
    "frozen": lambda: nn.LayerNorm(6).requires_grad_(False),
}


@given(
    name=st.sampled_from([name for name in MODULES if name != "compiled"]),
    x=st.sampled_from(["f32", "f64", "vector", "bf16", "columns", "nan", "huge", "zero", "none"]),
)
@examples(80)
def test_any_module_gives_its_factors_or_an_error_and_is_not_changed(name, x):
    values = {
        "f64": X.double(),
        "vector": X[0],
        "bf16": X.bfloat16(),
        "columns": torch.cat([X, X]).T.contiguous().T[:2],
        "nan": X * math.nan,
        "huge": X * 1e36,
        "zero": X * 0,
        "none": X[:0],
    }.get(x, X)
    module, kept = moved(MODULES[name]()), values.clone()
    before = state(module)
    parts = outcome(module, values)
    if isinstance(parts, str):
        assert "\n" not in parts
    else:
        y = copy.deepcopy(module)(values.clone())
        y = y[0] if isinstance(y, tuple) else y
        tolerance = 0.1 if x == "bf16" else 1e-4
        torch.testing.assert_close(parts.output, y.detach(), rtol=tolerance, atol=tolerance)
    assert_same(before, state(module))
    assert torch.equal(values.nan_to_num(), kept.nan_to_num())


@pytest.mark.parametrize("name", ["in place", "compiled", "two dimensions", "frozen", "tuple"])
def test_norms_among_them_have_factors(name):
    module = moved(MODULES[name]())
    parts = normscope.factors(module, X)
    torch.testing.assert_close(parts.output, torch.as_tensor(_made(module)), rtol=0, atol=1e-5)


def _made(module: nn.Module) -> Tensor:
    y = module(X.clone())
    return (y[0] if isinstance(y, tuple) else y).detach()


def test_a_zero_input_that_does_not_tell_the_gain_is_an_error():
    """GemmaRMSNorm scales by 1 + weight, LlamaRMSNorm by weight: at 0 they are the same."""
    for kind in (LlamaRMSNorm, GemmaRMSNorm):
        with pytest.raises(normscope.Explained, match="zero or constant"):
            normscope.factors(kind(6), X * 0)
    layer = moved(nn.LayerNorm(6))  # whose formula is known
    assert torch.equal(normscope.factors(layer, X * 0 + 3).gain, layer.get_parameter("weight"))


@pytest.mark.parametrize(("norm", "words"), [(3, "norm is of type int"), ("", "unknown arm")])
def test_an_argument_of_another_type_is_an_error_that_names_it(norm, words):
    with pytest.raises(normscope.Explained, match=words):
        normscope.factors(norm, X)
    with pytest.raises(normscope.Explained, match="x is of type list"):
        normscope.factors("rmsnorm", [1.0])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (X[:, :0], r"\(2, 0\): give floating-point"),
        (torch.tensor(1.0), r"shape \(\): give"),
        (X.long(), "torch.int64"),
        (X * math.nan, "not finite"),
        (X.to(torch.complex64), "complex64"),
        (X.to_sparse(), "dense"),
        (X.bool(), "bool"),
        (X.to("meta"), "meta device"),
        (X * math.inf, "not finite"),
        (torch.tensor([[6e4] * 5 + [-6e4]], dtype=torch.float16), "float16"),
    ],
)
def test_an_x_without_finite_vectors_is_an_error(x, words):
    for norm in ("layernorm", nn.LayerNorm(6)):
        with pytest.raises(normscope.Explained, match=words) as error:
            normscope.factors(norm, x)
        assert "\n" not in str(error.value)
