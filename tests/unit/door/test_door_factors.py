"""The factors of norms, compared with torch's layers, and the length of each factor."""

import math

import pytest
import torch
import transformers
from recall_recipes import moved
from torch import Tensor, nn
from torch.nn import functional as F

import normscope
from normscope.nn.arms import ARMS

D = 12  # whose root float32 does not hold
T5LayerNorm = transformers.models.t5.modeling_t5.T5LayerNorm
LlamaRMSNorm = transformers.models.llama.modeling_llama.LlamaRMSNorm


class NamedEpsRMSNorm(nn.Module):
    """An RMSNorm whose eps, which is large, has another name."""

    norm_eps = 0.5

    def forward(self, x: Tensor) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + self.norm_eps).sqrt()


TOKEN_WISE = [name for name, arm in ARMS.items() if arm.norm.statistic == "token"]
LAYERS = {
    "layernorm": lambda: nn.LayerNorm(D, eps=1e-3),
    "layernorm_plain": lambda: nn.LayerNorm(D, elementwise_affine=False),
    "layernorm_gain": lambda: nn.LayerNorm(D, bias=False),
    "rmsnorm": lambda: nn.RMSNorm(D, eps=1e-3),
    "rmsnorm_plain": lambda: nn.RMSNorm(D, elementwise_affine=False),
    "llama": lambda: LlamaRMSNorm(D, eps=1e-3),
    "gemma": lambda: transformers.models.gemma.modeling_gemma.GemmaRMSNorm(D, eps=1e-3),
    "two_dimensions": lambda: nn.LayerNorm([3, D], eps=1e-3),
    "no_eps": lambda: nn.RMSNorm(D),
    "eps_0": lambda: nn.RMSNorm(D, eps=0.0),
    "gamma": lambda: Named("gamma", "beta"),
    "norm_eps": NamedEpsRMSNorm,
    "beta": lambda: Named("beta", "gamma"),
    "t5": lambda: T5LayerNorm(D, eps=1e-3),
}


class Named(nn.LayerNorm):
    """A LayerNorm whose parameters have other names, in this order."""

    gamma: Tensor
    beta: Tensor

    def __init__(self, *names: str) -> None:
        super().__init__(D, elementwise_affine=False)
        for name in names:
            self.register_parameter(name, nn.Parameter(torch.zeros(D) + (name == "gamma")))

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, (D,), self.gamma, self.beta, self.eps)


def tokens() -> Tensor:
    g = torch.Generator().manual_seed(0)
    return 2 * torch.randn(5, 3, D, generator=g, dtype=torch.float64) + 1


@pytest.mark.parametrize("arm", TOKEN_WISE)
def test_the_parts_of_an_arm_are_what_their_names_say(arm):
    x, norm = tokens(), ARMS[arm].norm
    parts = normscope.factors(arm, x)
    u = x - x.mean(-1, keepdim=True) if norm.center else x
    radius = {"1": 1.0, "sqrt(d)": math.sqrt(D)}.get(
        norm.radius, 1.0 if norm.log_rate else math.sqrt(D)
    )
    torch.testing.assert_close(parts.centered, u)
    torch.testing.assert_close(parts.projected, F.normalize(u, dim=-1), rtol=0, atol=1e-5)
    learned = norm.radius == "learned"  # a parameter, in float32
    assert float(parts.radius) == pytest.approx(radius, rel=1e-7 if learned else 1e-15)
    # an arm begins with a gain of 1 and a bias of 0
    torch.testing.assert_close(parts.output, radius * F.normalize(u, dim=-1), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", LAYERS)
def test_the_product_of_the_parts_is_the_output_of_a_layer(name):
    layer = moved(LAYERS[name]())
    x = tokens().float()
    parts = normscope.factors(layer, x)
    torch.testing.assert_close(parts.output, layer(x), rtol=0, atol=1e-5)
    assert (parts.projected.norm(dim=-1) < 1 + 1e-6).all()
    assert float(parts.radius) == pytest.approx(math.sqrt(parts.gain.numel()))
    centers = isinstance(layer, nn.LayerNorm)
    over = [-1, -2][: parts.gain.dim()]
    assert torch.equal(parts.centered.sum(over).abs().amax() < 1e-4, torch.tensor(centers))
    token = (0,) * (3 - parts.gain.dim())
    assert torch.equal(normscope.factors(layer, x[token]).output, parts.output[token])


class CenteringRMSNorm(nn.LayerNorm):
    """A norm whose name does not say what it does."""


class PairedRMSNorm(nn.Module):
    """Needs two arguments, so that it does not run on another input alone."""

    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:]) * scale


@pytest.mark.parametrize(
    "kind", [LlamaRMSNorm, T5LayerNorm, nn.LayerNorm, nn.RMSNorm, CenteringRMSNorm]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_where_the_mean_is_0_what_the_layer_computes_says_whether_it_is_taken(kind, dtype):
    x = torch.tensor([[[1.0, -1.0, 2.0, -2.0]], [[1.0, 1.0, -1.0, -1.0]]]).to(dtype)
    layer = kind(4).to(dtype)
    centers = torch.allclose(layer(x), layer(x + 1), atol=0.1)  # a centering layer ignores a mean
    parts = normscope.factors(layer, x)
    assert torch.equal(parts.centered, x)
    watched = nn.Sequential(nn.Identity(), layer)
    random = torch.get_rng_state()
    with normscope.watch(watched) as norms:
        (watched(x.requires_grad_()) * (x + 1)).sum().backward()
    assert torch.equal(torch.get_rng_state(), random)
    (row,) = norms.table().to_dict("records")
    assert row["center"] == centers
    # dy = x + 1 has the mean 1, so that its share is 1 / (1 + <x^2>) per token: 1/3.5 and 1/2
    assert row["r_mean"] == pytest.approx((1 / 3.5 + 1 / 2) / 2 if centers else 0.0, rel=1e-3)


def test_where_nothing_says_whether_the_mean_is_taken_it_is_an_error():
    x = torch.tensor([[1.0, -1.0, 2.0, -2.0]], requires_grad=True)
    layer = PairedRMSNorm()
    with normscope.watch(layer) as norms:
        layer(x, torch.ones(4)).square().sum().backward()
    words = (
        r"do not tell whether it centers, and it cannot be run .*: give inputs with another mean"
    )
    with pytest.raises(normscope.Explained, match=words):
        norms.table()
    layer = LlamaRMSNorm(4)
    nn.init.zeros_(layer.weight)  # its output is 0, whatever the input
    with pytest.raises(normscope.Explained, match="whether it centers, nor do others: give"):
        normscope.factors(layer, x)


def test_every_arm_is_listed_with_its_factors():
    table = normscope.arms()
    assert list(table.index) == list(ARMS)
    assert table.loc["scalenorm", ["center", "radius", "gain"]].tolist() == [
        False,
        "learned",
        False,
    ]


class BesselLayerNorm(nn.Module):
    """Of a deviation over d - 1: within the rounding of bfloat16 one, and none."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)


class OtherRMSNorm(nn.Module):
    """By its name a norm, and none."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sigmoid()


@pytest.mark.parametrize(
    ("norm", "words"),
    [
        ("layer_norm", r"did you mean layernorm\?"),
        ("batchnorm", "batchnorm"),
        ("dyt", "dyt"),
        (OtherRMSNorm(), "OtherRMSNorm"),
        (BesselLayerNorm(), "BesselLayerNorm"),
        (nn.Linear(D, D), "Linear"),
    ],
)
def test_what_has_no_factors_is_an_error_that_names_it(norm, words):
    with pytest.raises(normscope.Explained, match=words):
        normscope.factors(norm, tokens().float())


def test_an_error_names_the_tensor_that_is_not_finite():
    layer = nn.LayerNorm(D)
    nn.init.constant_(layer.weight, math.nan)
    with pytest.raises(normscope.Explained, match="the parameter weight of LayerNorm has NaN"):
        normscope.factors(layer, tokens().float())
    half = LlamaRMSNorm(D).half()
    nn.init.constant_(half.weight, 6e4)  # the output reaches 6e4 * sqrt(12), beyond float16
    spike = torch.eye(D)[:1].half()
    with pytest.raises(normscope.Explained, match="the output of LlamaRMSNorm is not finite, alth"):
        normscope.factors(half, spike)


@pytest.mark.parametrize("norm", ["rmsnorm", nn.LayerNorm(D), LlamaRMSNorm(D)])
def test_a_transform_of_torch_func_around_it_is_an_error(norm):
    def output(x: Tensor) -> Tensor:
        return normscope.factors(norm, x).output.sum()

    for transform in (torch.func.vmap, torch.func.grad, torch.func.jacrev):
        with pytest.raises(normscope.Explained, match=r"torch\.func .*call factors outside of it"):
            transform(output)(tokens().float())
