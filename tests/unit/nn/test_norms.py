"""The norm layers against torch's and against their formula."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from normscope.nn.arms import ARMS
from normscope.nn.norms import build
from normscope.nn.recipe import Norm

D = 7
ALL = pytest.mark.parametrize("arm", ARMS)
# one of each kernel: the affine parts are in the formula below
TOKEN_ARMS = ["layernorm", "rmsnorm_plain", "manual_l2", "centered_l2", "scalenorm"]
Parameters = dict[str, Tensor]


def randomize(module: nn.Module, seed: int = 0) -> nn.Module:
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
    ours, theirs = randomize(build(ARMS[arm].norm, D)), TORCH[arm]().double()
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


def by_factors(norm: Norm, x: Tensor, p: Parameters) -> Tensor:
    """``gain * radius * project(center(x)) + bias``, or an elementwise map, in plain operations."""

    def size(q: Tensor) -> Tensor:
        return torch.exp(q * norm.log_rate) if norm.log_rate else q

    if norm.elementwise is not None:
        f = {"tanh": torch.tanh, "erf": torch.special.erf}[norm.elementwise]
        y = f(p["alpha"] * x + p.get("shift", torch.tensor(0.0)))
    elif norm.statistic == "none":
        return x * 1
    else:
        over = (0, 1) if norm.statistic == "batch" else (-1,)
        u = x - x.mean(over, keepdim=True) if norm.center else x
        if norm.radius == "sqrt(d)":
            y = u / (u.square().mean(over, keepdim=True) + norm.eps).sqrt()
        else:
            y = u / u.square().sum(-1, keepdim=True).sqrt().clamp(min=norm.eps)
            y = size(p["g"]) * y if norm.radius == "learned" else y
    gain = size(p["gain"]) if "gain" in p else p.get("weight", torch.tensor(1.0))
    return y * gain + p.get("bias", torch.tensor(0.0))


NORMS = {name: arm.norm for name, arm in ARMS.items()} | {
    "large eps": Norm(center=True, eps=3.0),
    "large eps, affine": Norm(gain=True, bias=True, eps=3.0),
    "longer than a token": Norm(radius="learned", gain=True, eps=100.0, log_rate=2.0),
    "batch, large eps": Norm(statistic="batch", center=True, gain=True, bias=True, eps=3.0),
}


@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_equals_its_formula_forward_and_backward(norm):
    layer = randomize(build(norm, D))
    parameters: Parameters = dict(layer.named_parameters())
    leaves = list(parameters.values())
    if log_rate := norm.log_rate:  # sizes near 1
        for name in parameters.keys() & {"gain", "g"}:
            parameters[name].data /= log_rate
    formula = backward(lambda x: by_factors(norm, x, parameters), leaves)
    assert_same(backward(layer, leaves), formula)


# a constant token has a direction unless the mean is subtracted
@pytest.mark.parametrize(
    ("arm", "value"),
    [(arm, x) for arm in TOKEN_ARMS for x in (0.0, 3.0) if x == 0 or ARMS[arm].norm.center],
)
def test_a_zero_token_or_a_centered_constant_has_finite_output_and_gradient(arm, value):
    x = torch.full((1, D), value, requires_grad=True)
    y = build(ARMS[arm].norm, D)(x)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(y, torch.zeros(1, D))
    assert x.grad.isfinite().all()


def test_batchnorm_keeps_torchs_running_statistics_and_uses_them_in_evaluation():
    ours = randomize(build(ARMS["batchnorm"].norm, D))
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


# eps is negligible compared with a variance of 1: it moves an output by less than eps / 2


def test_none_is_the_identity():
    x = tokens(2, 3)
    assert build(ARMS["none"].norm, D)(x) is x
    assert [name for name, arm in ARMS.items() if arm.norm.is_identity] == ["none"]


@ALL
def test_autocast_does_not_change_an_fp32_norm(arm):
    layer = build(ARMS[arm].norm, D)
    x = tokens(2, 3).float()
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x)
    assert torch.equal(y, layer(x))
