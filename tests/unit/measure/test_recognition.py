"""Norms are recognized by what they compute: known formulas in, the same numbers out."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F

from normscope.errors import Explained
from normscope.measure.recognition import norms, recognize

D = 12
models = transformers.models
TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


class ANorm(nn.Module):
    """``f(x, *parameters)``, whatever its parameters are called."""

    def __init__(self, f: Callable[..., Tensor], *parameters: Tensor) -> None:
        super().__init__()
        self.f, self.p = f, nn.ParameterList(parameters)

    def forward(self, x: Tensor, *more: Tensor) -> Tensor:
        return self.f(x, *self.p, *more)


def layer(eps: float) -> Callable[..., Tensor]:
    return lambda x, *affine: F.layer_norm(x, x.shape[-1:], *affine, eps=eps)


def rms(eps: float) -> Callable[..., Tensor]:
    return lambda x, gain: x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain


def in_float32(x: Tensor, gain: Tensor) -> Tensor:
    return rms(1e-6)(x.float(), gain).to(x.dtype)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def filled(norm: nn.Module, gain: Tensor) -> nn.Module:
    norm.get_parameter("weight").data = gain
    return norm


GAIN, BIAS, ONE = 1 + 0.3 * normal(D), normal(D, seed=1), torch.ones(D)
HEADS = normal(3, D)
GemmaRMSNorm = models.gemma.modeling_gemma.GemmaRMSNorm
# the norm, and whether it centers, its eps, gain and bias
NORMS: dict[str, tuple[nn.Module, bool, float, Tensor | float, Tensor | float]] = {
    "LayerNorm": (filled(nn.LayerNorm(D), GAIN), True, 1e-5, GAIN, 0),
    "a constant eps": (ANorm(layer(1e-5), GAIN, BIAS), True, 1e-5, GAIN, BIAS),
    "another eps": (ANorm(rms(0.02), GAIN), False, 0.02, GAIN, 0),
    "no eps": (ANorm(rms(0), GAIN), False, 0, GAIN, 0),
    "a trained eps": (
        ANorm(lambda x, g, e: rms(e.exp())(x, g), GAIN, torch.tensor(-3.0)),
        *(False, float(torch.tensor(-3.0).exp()), GAIN, 0),
    ),
    "a norm that is trained away": (
        ANorm(layer(1e12), 1e6 * GAIN, BIAS),
        True,
        1e12,
        1e6 * GAIN,
        BIAS,
    ),
    "a large bias": (ANorm(layer(1e-5), GAIN, 100 * BIAS), True, 1e-5, GAIN, 100 * BIAS),
    "a gain of 0": (ANorm(layer(1e-5), 0 * GAIN, BIAS), True, 1e-5, 0, BIAS),
    "the exponent of a gain": (
        ANorm(lambda x, g: rms(1e-3)(x, g.exp()), GAIN),
        False,
        1e-3,
        GAIN.exp(),
        0,
    ),
    "1 + weight": (filled(GemmaRMSNorm(D), BIAS), False, 1e-6, 1 + BIAS, 0),
    "in float32": (ANorm(in_float32, GAIN), False, 1e-6, GAIN, 0),
    "no parameters": (models.olmo.modeling_olmo.OlmoLayerNorm(D), True, 1e-5, 1, 0),
    "T5": (filled(models.t5.modeling_t5.T5LayerNorm(D), GAIN), False, 1e-6, GAIN, 0),
    "a gain of each head": (
        filled(models.cohere.modeling_cohere.CohereLayerNorm((3, D)), HEADS),
        *(True, 1e-5, HEADS, 0),
    ),
    "the variance over d - 1": (
        ANorm(lambda x: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)),
        *(True, 0, ((D - 1) / D) ** 0.5, 0),
    ),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in NORMS
        for dtype in TYPES
        if "away" not in name or dtype != torch.float16  # which has no such gain
    ],
)
def test_a_norm_is_found_with_its_eps(name, dtype):
    module, center, eps, gain, bias = NORMS[name]
    module = copy.deepcopy(module).to(dtype)
    x = (0.1 * normal(2, 5, 3, D, seed=2)).to(dtype)
    norm = recognize(module, x, module(x))
    assert norm.center == center
    assert norm.eps == pytest.approx(eps, rel=1e-4)
    assert norm.gain is not None
    assert norm.bias is not None
    digits = 2 * max(torch.finfo(dtype).eps, 1e-6)
    for found, true in ((norm.gain, gain), (norm.bias, bias)):
        expected = torch.as_tensor(true, dtype=torch.float64).expand_as(found)
        torch.testing.assert_close(found.data, expected, rtol=digits, atol=digits)


def halves(x: Tensor) -> Tensor:
    return F.rms_norm(x.unflatten(-1, (2, -1)), (D // 2,)).flatten(-2)


@pytest.mark.parametrize(
    ("f", "x", "more", "reason"),
    [
        (halves, normal(5, D), (), "does not compute a norm of each token"),
        (lambda x: x / x.abs().amax(-1, True), normal(5, D), (), "does not compute a norm"),
        (torch.tanh, normal(5, D), (), "does not compute a norm"),
        (torch.zeros_like, normal(5, D), (), "does not compute a norm"),
        (lambda x, gate=1: rms(1e-5)(x, gate), normal(5, D), (normal(D),), "more than its first"),
        (
            rms(1e-5),
            1000 * normal(5, D).half(),
            (ONE.half(),),
            "overflows or loses digits in torch.fl",
        ),
    ],
)
def test_the_reason_why_a_module_is_not_a_norm_is_true(f, x, more, reason):
    parameters, more = (more, ()) if f.__qualname__.startswith("rms") else ((), more)
    norm = ANorm(f, *parameters)
    with pytest.raises(Explained, match=reason):
        recognize(norm, x, norm(x, *more))


def test_a_norm_is_found_in_a_model_whatever_its_class_is_called():
    class Standardization(nn.Module):
        def __init__(self, p: float = 2.0) -> None:
            super().__init__()
            self.a, self.p = nn.Parameter(ONE.clone()), p

        def forward(self, x: Tensor) -> Tensor:
            return self.a * x / x.abs().pow(self.p).mean(-1, keepdim=True).pow(1 / self.p)

    parts: dict[str, Any] = {
        "found": Standardization(),
        "of_4": Standardization(4.0),
        "linear": nn.Linear(D, D),
        "identity": nn.Identity(),
        "batch": nn.BatchNorm1d(D),
        "wrapped": nn.Sequential(nn.LayerNorm(D)),
        "weight": nn.utils.parametrizations.weight_norm(nn.RMSNorm(D)),
    }
    assert list(norms(nn.ModuleDict(parts))) == ["found", "wrapped.0", "weight"]
