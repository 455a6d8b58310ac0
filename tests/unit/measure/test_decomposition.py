"""The closed form of a norm's backward pass, against autograd, numpy and theory."""

import math
from collections import defaultdict
from typing import get_args

import numpy as np
import pytest
import torch
from scipy.special import gammaln
from torch import Tensor

from normscope.measure.decomposition import (
    StandardTokens,
    backward,
    cosine_by_identity,
    decompose,
    gradient_at_z,
    published_quantities,
    relative_error,
    shares,
    standardize,
)
from normscope.nn.arms import ARMS
from normscope.nn.norms import TokenNorm, build
from normscope.nn.recipe import Norm, NormBackward

# one of each radius, with a gain and without, centered and not
TOKEN_ARMS = ["layernorm", "layernorm_plain", "rmsnorm", "manual_l2_gain", "centered_scalenorm"]
CENTER = pytest.mark.parametrize("center", [True, False], ids=["LayerNorm", "RMSNorm"])
D = 128


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def layer_of(norm: Norm, d: int) -> TokenNorm:
    layer = build(norm, d).double()
    assert isinstance(layer, TokenNorm)
    return layer


def by_autograd(layer: TokenNorm, x: Tensor, dy: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(layer(x), x, dy)[0]


def cosines(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


def standardized(center: bool, eps: float, *, d: int = 9, seed: int = 0) -> StandardTokens:
    """50 tokens through a layer with token statistics and no affine part."""
    layer = layer_of(Norm(center=center, eps=eps), d)
    return standardize(layer, 2 * normal(50, d, seed=seed) + 1)


def close(a: Tensor, b: Tensor, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


@pytest.mark.parametrize("eps", [1e-14, 3.0])
def test_the_shares_are_energies_along_1_and_along_z(eps):
    at, g = standardized(True, eps), normal(50, 9, seed=1)
    one = np.ones(9) / 3
    for i in range(50):
        token, z = g[i].numpy(), at.z[i].numpy()
        basis = np.linalg.svd(np.stack([one, z / np.linalg.norm(z)]))[2][2:]  # all that is left
        expected = [
            token @ token,
            (token @ one) ** 2,
            (token @ z) ** 2 / (z @ z),
            np.square(basis @ token).sum(),
        ]
        assert [float(part[i]) for part in shares(g, at)] == pytest.approx(expected, abs=1e-10)


@CENTER
@pytest.mark.parametrize("rule", get_args(NormBackward))
def test_backward_passes_equal_those_of_the_layers(center, rule):
    layer = build(Norm(center=center, eps=0.1), 9, rule).double()
    assert isinstance(layer, TokenNorm)
    x, g = 2 * normal(50, 9) + 1, normal(50, 9, seed=1)
    close(backward(rule, g, standardize(layer, x)), by_autograd(layer, x, g))


@CENTER
@pytest.mark.parametrize("eps", [1e-14, 0.1, 100.0])
def test_cosines_follow_from_the_shares_and_the_leak(center, eps):
    at, g = standardized(center, eps), normal(50, 9, seed=1)
    total, *parts = shares(g, at)
    m, s, t = (part / total for part in parts)
    leak = eps / at.sigma.squeeze(-1).square()
    exact = backward("exact", g, at)
    of_exact = (t + leak.square() * s).sqrt()
    close(cosines(g, exact), (t + leak * s) / of_exact)
    close(
        cosines(backward("center_scale", g, at), exact),
        (t + leak * s) / ((1 - m).sqrt() * of_exact),
    )


@CENTER
@pytest.mark.parametrize("eps", [1e-14, 0.1, 100.0])
def test_error_identity_is_the_largest_error_of_the_predicted_cosine(center, eps):
    at, g = standardized(center, eps), normal(50, 9, seed=1)
    identity = cosine_by_identity(g, at)
    close(identity, cosines(backward("center_scale", g, at), backward("exact", g, at)))
    off = StandardTokens(at.z, at.sigma, not center)  # a mean that the layer has not
    gap = (cosines(backward("center_scale", g, off), backward("exact", g, off))).sub(
        cosine_by_identity(g, off)
    )
    assert decompose(g, off)["error_identity"] == pytest.approx(float(gap.abs().max()))
    assert decompose(g, at)["error_identity"] < 1e-10


@CENTER
def test_decompose_has_means_over_tokens_and_ratios_of_batch_means(center):
    at, g = standardized(center, 0.1), normal(50, 9, seed=1) * (1 + torch.arange(50.0)[:, None])
    row = decompose(g, at)
    total, *parts = (part.numpy() for part in shares(g, at))
    for name, part in zip(("r_mean", "r_radial", "r_tangent"), parts, strict=True):
        assert row[name] == pytest.approx(np.mean(part / total), rel=1e-12)
        assert row[f"{name}_of_batch"] == pytest.approx(part.sum() / total.sum(), rel=1e-12)
    assert (row["r_mean"] == 0) != center
    exact = backward("exact", g, at)
    for rule in ("center_scale", "projected", "straight_through"):
        other = backward(rule, g, at)
        assert row[f"cos_{rule}"] == pytest.approx(cosines(other, exact).mean().item(), rel=1e-12)
        error = np.linalg.norm(other - exact) / np.linalg.norm(exact)
        assert row[f"error_{rule}"] == pytest.approx(error, rel=1e-12)
    assert row["error_identity"] < 1e-12
    sigma = at.sigma.numpy()
    assert row["sigma_mean"] == pytest.approx(sigma.mean())
    assert row["sigma_std"] == pytest.approx(sigma.std(ddof=1))


@CENTER
def test_tokens_without_gradient_count_only_in_sums(center):
    at, g = standardized(center, 1e-5), normal(50, 9, seed=1)
    silent = torch.arange(50) % 2 == 0
    g[silent] = 0
    g[0] = 1e-20
    row = decompose(g, at)
    assert all(map(math.isfinite, row.values()))
    heard = decompose(g[~silent], StandardTokens(at.z[~silent], at.sigma[~silent], center))
    of_tokens_with_a_gradient = [k for k in row if not k.startswith(("sigma", "error_id"))]
    for name in of_tokens_with_a_gradient:
        assert row[name] == pytest.approx(heard[name], rel=1e-12), name
    assert row["sigma_mean"] == pytest.approx(float(at.sigma.mean()))


def test_a_layer_that_no_gradient_reaches_has_no_shares_and_no_cosines():
    row = decompose(torch.zeros(50, 9, dtype=torch.float64), standardized(True, 1e-5))
    assert all(math.isnan(v) for k, v in row.items() if not k.startswith("sigma"))


@CENTER
def test_constant_and_zero_tokens_have_no_radial_part(center):
    x = normal(6, 9)
    x[:2], x[2] = 0, 0 if not center else 7
    layer = layer_of(Norm(center=center), 9)
    at, g = standardize(layer, x), normal(6, 9, seed=1)
    _, _, radial, _ = shares(g, at)
    assert (radial == 0).tolist() == [True] * 3 + [False] * 3
    assert all(map(math.isfinite, decompose(g, at).values()))
    close(backward("exact", g, at), by_autograd(layer, x, g), 1e-9)


@pytest.mark.parametrize("arm", TOKEN_ARMS)
def test_the_closed_form_equals_autograd_only_with_the_gain(arm):
    layer = layer_of(ARMS[arm].norm, 8)
    for p in layer.parameters():  # as a training moves them
        p.data += 0.3 * normal(p.numel(), seed=2).view_as(p) / (layer.log_rate or 1)
    x, dy = 3 * normal(40, 8) + 1, normal(40, 8, seed=1)
    exact, at = by_autograd(layer, x, dy), standardize(layer, x)
    with_gain, without = (gradient_at_z(layer, dy, gain=gain) for gain in (True, False))
    assert relative_error(backward("exact", with_gain, at), exact) < 1e-12
    error = relative_error(backward("exact", without, at), exact)
    if layer.gain is None:
        assert error < 1e-12
    else:
        assert error > 0.05


@pytest.mark.parametrize("arm", [arm for arm in TOKEN_ARMS if ARMS[arm].norm.radius != "sqrt(d)"])
def test_a_token_that_is_much_shorter_than_eps_keeps_its_radial_part(arm):
    layer, x, dy = layer_of(ARMS[arm].norm, 8), 1e-20 * normal(5, 8), normal(5, 8, seed=1)
    closed = backward("exact", gradient_at_z(layer, dy), standardize(layer, x))
    assert relative_error(closed, by_autograd(layer, x, dy)) < 1e-12


def mean_root_of_beta(a: float, b: float) -> float:
    """E sqrt(X) of X from a beta distribution."""
    return math.exp(gammaln(a + 0.5) + gammaln(a + b) - gammaln(a) - gammaln(a + b + 0.5))


def test_gradients_without_preferred_direction_are_the_null_of_shares_and_cosines():
    """Shares of one and of two directions in d follow beta distributions."""
    n = 10_000
    at = standardize(layer_of(Norm(center=True), D), normal(n, D))
    row = decompose(normal(n, D, seed=1), at)
    error = 4 * math.sqrt(2 / n)  # of d times a share, whose variance is about 2
    assert row["r_mean"] * D == pytest.approx(1, abs=error)
    assert row["r_radial"] * D == pytest.approx(1, abs=error)
    # a cosine varies about half as much as the shares below its root
    assert row["cos_center_scale"] == pytest.approx(
        mean_root_of_beta((D - 2) / 2, 1 / 2), abs=error / 2 / D
    )
    assert row["cos_straight_through"] == pytest.approx(
        mean_root_of_beta((D - 2) / 2, 1), abs=error / math.sqrt(2) / D
    )
    assert row["cos_center_scale"] == pytest.approx(0.9961, abs=5e-4)
    assert row["cos_straight_through"] == pytest.approx(0.9922, abs=5e-4)


def published_in_numpy(x: np.ndarray, dy: np.ndarray) -> dict[str, float]:
    """Token by token, as the published script's formulas are written."""
    tokens: dict[str, list[float]] = defaultdict(list)

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ b / (max(np.linalg.norm(a), 1e-8) * max(np.linalg.norm(b), 1e-8)))

    for token, g in zip(x, dy, strict=True):
        s = np.sqrt(np.var(token) + 1e-5)
        z = (token - np.mean(token)) / s
        radial = z * np.mean(g * z)
        exact = (g - g.mean() - radial) / s
        tokens["sigma"].append(float(s))
        tokens["energy"].append(float(g @ g))
        tokens["mean"].append(len(g) * g.mean() ** 2)
        tokens["radial"].append(float(radial @ radial))
        tokens["cos_center_scale"].append(cosine((g - g.mean()) / s, exact))
        tokens["cos_straight_through"].append(cosine(g, exact))
    means = {name: float(np.mean(values)) for name, values in tokens.items()}
    return {
        "r_mean": means["mean"] / (means["energy"] + 1e-12),
        "r_radial": means["radial"] / (means["energy"] + 1e-12),
        "sigma_mean": means["sigma"],
        "sigma_std": float(np.std(tokens["sigma"], ddof=1)),
        "cos_center_scale": means["cos_center_scale"],
        "cos_straight_through": means["cos_straight_through"],
    }


@pytest.mark.parametrize("scale", [1.0, 1e-5], ids=["plain", "at the floors"])
def test_published_quantities_equal_those_of_the_script(scale):
    lengths = torch.rand(30, 1, generator=generator(2), dtype=torch.float64)
    x, dy = lengths * normal(30, 9) + 1, scale * lengths * normal(30, 9, seed=1)
    assert published_quantities(x, dy) == pytest.approx(
        published_in_numpy(x.numpy(), dy.numpy()), rel=1e-10
    )


def test_relative_error_is_relative_to_the_second():
    assert relative_error(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 2.0])) == pytest.approx(
        math.sqrt(13) / 2
    )
    assert math.isnan(relative_error(torch.zeros(2), torch.zeros(2)))
