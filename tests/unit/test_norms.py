"""The norm layers against torch's own, against formulas, and against what theory says of them."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor, nn

from normscope.nn.arms import ARMS
from normscope.nn.norms import build

D = 7
ALL = pytest.mark.parametrize("arm", ARMS)
TOKEN_ARMS = [name for name, arm in ARMS.items() if arm.norm.statistic == "token"]
TOKEN = pytest.mark.parametrize("arm", TOKEN_ARMS)
CENTERED = pytest.mark.parametrize("arm", [n for n in TOKEN_ARMS if ARMS[n].norm.center])
Parameters = dict[str, Tensor]


def randomized(module: nn.Module, seed: int = 0) -> nn.Module:
    """In float64, every parameter drawn from U(0.5, 1.5): away from 0 and from its start."""
    g = torch.Generator().manual_seed(seed)
    for p in module.double().parameters():
        nn.init.uniform_(p, 0.5, 1.5, generator=g)
    return module


def tokens(*shape: int) -> Tensor:
    g = torch.Generator().manual_seed(1)
    return 3 * torch.randn(*shape, D, generator=g, dtype=torch.float64) + 1


def backward(f: Callable[[Tensor], Tensor], leaves: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Output for a fixed input, and the gradients of a fixed functional of it."""
    x = tokens(2, 5).requires_grad_()
    y = f(x)
    weights = torch.linspace(-1, 2, y.numel(), dtype=torch.float64).view_as(y)
    return y, list(torch.autograd.grad((weights * y).sum(), [x, *leaves]))


def assert_same(ours: tuple[Tensor, list[Tensor]], theirs: tuple[Tensor, list[Tensor]]) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


TORCH: dict[str, Callable[[], nn.Module]] = {
    "layernorm": lambda: nn.LayerNorm(D, eps=1e-5),
    "layernorm_gain": lambda: nn.LayerNorm(D, eps=1e-5, bias=False),
    "layernorm_bias": lambda: nn.LayerNorm(D, eps=1e-5),
    "layernorm_plain": lambda: nn.LayerNorm(D, eps=1e-5, elementwise_affine=False),
    "rmsnorm": lambda: nn.RMSNorm(D, eps=1e-5),
    "rmsnorm_plain": lambda: nn.RMSNorm(D, eps=1e-5, elementwise_affine=False),
    "batchnorm": lambda: nn.BatchNorm1d(D, eps=1e-5),
    "batchnorm_plain": lambda: nn.BatchNorm1d(D, eps=1e-5, affine=False),
}


@pytest.mark.parametrize("arm", TORCH)
def test_equals_torch_forward_and_backward(arm):
    ours, theirs = randomized(build(ARMS[arm].norm, D)), TORCH[arm]().double()
    leaves = {name.replace("gain", "weight"): p for name, p in ours.named_parameters()}
    shared = {name: p for name, p in theirs.named_parameters() if name in leaves}
    assert shared.keys() == leaves.keys()
    theirs.load_state_dict(leaves, strict=False)

    def torchs(x: Tensor) -> Tensor:
        return theirs(x.flatten(0, 1)).view_as(x) if "batchnorm" in arm else theirs(x)

    pairs = [(leaves[name], shared[name]) for name in leaves]
    assert_same(
        backward(ours, [p for p, _ in pairs]),
        backward(torchs, [q for _, q in pairs]),
    )


def layernorm(x: Tensor, p: Parameters) -> Tensor:
    u = x - x.mean(-1, keepdim=True)
    return affine(u / (u.square().mean(-1, keepdim=True) + 1e-5).sqrt(), p)


def rmsnorm(x: Tensor, p: Parameters) -> Tensor:
    return affine(x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt(), p)


def batchnorm(x: Tensor, p: Parameters) -> Tensor:
    u = x - x.mean((0, 1))
    return affine(u / (u.square().mean((0, 1)) + 1e-5).sqrt(), p)


def unit(x: Tensor, p: Parameters) -> Tensor:
    return affine(x / x.square().sum(-1, keepdim=True).sqrt().clamp(min=1e-9), p)


def centered(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


def centered_unit(x: Tensor, p: Parameters) -> Tensor:
    return unit(centered(x), p)


def scalenorm(x: Tensor, p: Parameters) -> Tensor:
    return affine(p["g"] * unit(x, {}), p)


def centered_scalenorm(x: Tensor, p: Parameters) -> Tensor:
    return scalenorm(centered(x), p)


def affine(y: Tensor, p: Parameters) -> Tensor:
    return y * p.get("gain", p.get("weight", torch.tensor(1.0))) + p.get("bias", torch.tensor(0.0))


FORMULAS: dict[str, Callable[[Tensor, Parameters], Tensor]] = {
    "layernorm": layernorm,
    "layernorm_gain": layernorm,
    "layernorm_bias": layernorm,
    "layernorm_plain": layernorm,
    "rmsnorm": rmsnorm,
    "rmsnorm_affine": rmsnorm,
    "rmsnorm_bias": rmsnorm,
    "rmsnorm_plain": rmsnorm,
    "manual_l2": unit,
    "manual_l2_gain": unit,
    "manual_l2_bias": unit,
    "manual_l2_affine": unit,
    "centered_l2": centered_unit,
    "centered_l2_gain": centered_unit,
    "centered_l2_bias": centered_unit,
    "centered_l2_affine": centered_unit,
    "scalenorm": scalenorm,
    "scalenorm_gain": scalenorm,
    "scalenorm_bias": scalenorm,
    "scalenorm_affine": scalenorm,
    "centered_scalenorm": centered_scalenorm,
    "centered_scalenorm_gain": centered_scalenorm,
    "centered_scalenorm_bias": centered_scalenorm,
    "centered_scalenorm_affine": centered_scalenorm,
    "batchnorm": batchnorm,
    "batchnorm_plain": batchnorm,
    "dyt": lambda x, p: affine(torch.tanh(p["alpha"] * x), p),
    "derf": lambda x, p: affine(torch.special.erf(p["alpha"] * x + p["shift"]), p),
    "none": lambda x, p: x * 1,
}


@ALL
def test_equals_its_formula_forward_and_backward(arm):
    layer = randomized(build(ARMS[arm].norm, D))
    parameters: Parameters = dict(layer.named_parameters())
    leaves = list(parameters.values())
    assert_same(backward(layer, leaves), backward(lambda x: FORMULAS[arm](x, parameters), leaves))


@ALL
def test_gradients_agree_with_finite_differences(arm):
    layer = randomized(build(ARMS[arm].norm, D))
    names, leaves = zip(*[("x", tokens(2, 2)), *layer.named_parameters()], strict=True)

    def f(x: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(layer, dict(zip(names[1:], values, strict=True)), (x,))

    assert torch.autograd.gradcheck(f, [leaf.detach().requires_grad_() for leaf in leaves])


def assert_zero_with_finite_gradient(arm: str, x: Tensor) -> None:
    x.requires_grad_()
    y = build(ARMS[arm].norm, D)(x)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(y, torch.zeros(1, D))
    assert x.grad.isfinite().all()


@TOKEN
def test_zero_token_has_finite_output_and_gradient(arm):
    assert_zero_with_finite_gradient(arm, torch.zeros(1, D))


@CENTERED
def test_constant_token_has_finite_output_and_gradient_where_the_mean_is_subtracted(arm):
    assert_zero_with_finite_gradient(arm, torch.full((1, D), 3.0))


@pytest.mark.parametrize("arm", [n for n in TOKEN_ARMS if ARMS[n].norm.radius != "sqrt(d)"])
def test_a_token_shorter_than_eps_is_divided_by_eps(arm):
    """As ScaleNorm's authors clamp the norm; half of eps comes out at half of the radius."""
    layer, eps = build(ARMS[arm].norm, D).double(), ARMS[arm].norm.eps
    u = centered(tokens(2, 2))
    y = layer(eps / 2 * u / u.norm(dim=-1, keepdim=True))
    half = {"1": 0.5, "learned": math.sqrt(D) / 2}[ARMS[arm].norm.radius]
    torch.testing.assert_close(y.norm(dim=-1), torch.full((2, 2), half).double())


def test_batchnorm_keeps_torchs_running_statistics_and_uses_them_in_evaluation():
    ours = randomized(build(ARMS["batchnorm"].norm, D))
    theirs = nn.BatchNorm1d(D).double()
    theirs.load_state_dict(ours.state_dict())
    for scale in (1, 4, 9):
        x = scale * tokens(4, 3)
        torch.testing.assert_close(ours(x), theirs(x.flatten(0, 1)).view_as(x), rtol=0, atol=1e-12)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, rtol=0, atol=1e-12)
    x = tokens(2, 2)
    ours.eval()
    theirs.eval()
    torch.testing.assert_close(ours(x), theirs(x.flatten(0, 1)).view_as(x), rtol=0, atol=1e-12)


def test_batchnorm_in_evaluation_treats_each_token_alone():
    layer = build(ARMS["batchnorm"].norm, D).double()
    layer(tokens(4, 3))
    layer.eval()
    x = tokens(4, 3)
    torch.testing.assert_close(layer(x)[1:, 1:], layer(x[1:, 1:]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("arm", ["batchnorm", "batchnorm_plain"])
def test_batchnorm_in_training_standardizes_each_channel(arm):
    y = build(ARMS[arm].norm, D).double()(tokens(20, 10)).flatten(0, 1)
    torch.testing.assert_close(y.mean(0), torch.zeros(D, dtype=torch.float64), rtol=0, atol=1e-12)
    one = torch.ones(D, dtype=torch.float64)
    torch.testing.assert_close(y.var(0, correction=0), one, rtol=0, atol=1e-5)


# eps is negligible beside a variance of 1: it moves an output by less than eps / 2
spread_tokens = (
    arrays(np.float64, (3, D), elements=st.floats(-100, 100))
    .filter(lambda a: bool((a.var(axis=1) >= 1).all()))
    .map(torch.from_numpy)
)


@TOKEN
@given(x=spread_tokens, factor=st.floats(1, 1e6))
def test_token_norms_ignore_the_scale_of_a_token(arm, x, factor):
    layer = build(ARMS[arm].norm, D).double()
    torch.testing.assert_close(layer(factor * x), layer(x), rtol=1e-5, atol=1e-5)


@TOKEN
@given(x=spread_tokens, shift=st.floats(-100, 100))
def test_centered_norms_ignore_the_mean_of_a_token(arm, x, shift):
    layer = build(ARMS[arm].norm, D).double()
    same = torch.allclose(layer(x + shift), layer(x), rtol=0, atol=1e-9)
    if ARMS[arm].norm.center:
        assert same
    elif abs(shift) >= 1:
        assert not same


@TOKEN
@given(x=spread_tokens, g=st.floats(0.1, 10))
def test_token_norms_project_on_their_radius(arm, x, g):
    layer = build(ARMS[arm].norm, D).double()
    for p in layer.parameters():
        if p.dim() == 0:
            nn.init.constant_(p, g)
    radius = {"1": 1, "sqrt(d)": math.sqrt(D), "learned": g}[ARMS[arm].norm.radius]
    norms = torch.linalg.vector_norm(layer(x), dim=-1)
    torch.testing.assert_close(norms, torch.full_like(norms, radius), rtol=1e-5, atol=0)


@CENTERED
@given(x=spread_tokens)
def test_centered_norms_have_zero_mean(arm, x):
    mean = build(ARMS[arm].norm, D).double()(x).mean(-1)
    torch.testing.assert_close(mean, torch.zeros_like(mean), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("plain", "center"),
    [
        ("rmsnorm", "layernorm"),
        ("manual_l2_bias", "centered_l2_bias"),
        ("scalenorm_affine", "centered_scalenorm_affine"),
    ],
)
@given(x=spread_tokens)
def test_a_norm_of_a_centered_token_is_the_centered_norm(plain, center, x):
    x = centered(x)
    without, within = (build(ARMS[arm].norm, D).double() for arm in (plain, center))
    torch.testing.assert_close(without(x), within(x), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("arm", "other", "ratio"),
    [
        ("layernorm", "centered_l2_affine", math.sqrt(D)),
        ("rmsnorm_plain", "manual_l2", math.sqrt(D)),
        ("centered_scalenorm", "layernorm_plain", 1),
        ("scalenorm_gain", "rmsnorm", 1),
    ],
)
@given(x=spread_tokens)
def test_arms_of_other_radius_start_as_multiples_of_each_other(arm, other, ratio, x):
    one, two = (build(ARMS[name].norm, D).double() for name in (arm, other))
    torch.testing.assert_close(one(x), ratio * two(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("arm", ["dyt", "derf"])
@given(x=spread_tokens)
def test_pointwise_norms_are_bounded_by_their_gain(arm, x):
    assert build(ARMS[arm].norm, D).double()(x).abs().max() <= 1


def test_none_is_the_identity():
    x = tokens(2, 3)
    assert build(ARMS["none"].norm, D)(x) is x
    assert [name for name, arm in ARMS.items() if arm.norm.is_identity] == ["none"]


@ALL
@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_output_is_finite_under_autocast(arm, dtype):
    layer = build(ARMS[arm].norm, D)
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(tokens(2, 3).to(dtype))
    assert y.isfinite().all()


@ALL
def test_autocast_leaves_an_fp32_norm_as_it_is(arm):
    layer = build(ARMS[arm].norm, D)
    x = tokens(2, 3).float()
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x)
    assert torch.equal(y, layer(x))
