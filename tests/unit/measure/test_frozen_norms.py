"""Norms with a frozen sigma: affine maps, equal to the norm where sigma is the constant."""

import copy

import pytest
import torch
from recall_recipes import move
from torch import Tensor, nn

from normscope.measure.frozen_norms import FrozenNorm, freeze_norms, replacing
from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.norms import TokenNorm, build
from normscope.nn.recipe import Model

D = 6
ARMS_OF_TOKENS = "layernorm rmsnorm_affine manual_l2_affine centered_scalenorm_affine".split()


def draw(*shape: int, seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64) + 0.5


def norm_of(arm: str) -> TokenNorm:
    """The norm of an arm with random parameters."""
    norm = move(build(ARMS[arm].norm, D).double())
    assert isinstance(norm, TokenNorm)
    return norm


def sigma_of(x: Tensor, norm: TokenNorm) -> Tensor:
    """``sqrt(mean(u^2))``, without eps where the radius is not sqrt(d)."""
    u = x - x.mean(-1, keepdim=True) if norm.center else x
    eps = norm.eps if norm.radius == "sqrt(d)" else 0.0
    return (u.square().mean(-1) + eps).sqrt()


@pytest.mark.parametrize("arm", ARMS_OF_TOKENS)
@torch.no_grad()
def test_a_frozen_norm_is_affine_and_is_the_norm_where_sigma_is_the_constant(arm):
    norm, x, y = norm_of(arm), draw(D), draw(D, seed=1)
    map_ = FrozenNorm(norm, float(sigma_of(x, norm))).double()
    torch.testing.assert_close(map_(x), norm(x), rtol=1e-12, atol=1e-12)
    zero = map_(torch.zeros_like(x))
    torch.testing.assert_close(
        map_(2 * x - 3 * y) - zero, 2 * (map_(x) - zero) - 3 * (map_(y) - zero)
    )


@pytest.mark.parametrize("first_apart", [False, True])
@torch.no_grad()
def test_the_constants_are_means_over_tokens(first_apart):
    """In several batches, and with the first position apart or not."""
    norm = norm_of("layernorm")
    batches = [draw(2, 5, D), 9 * draw(3, 5, D, seed=1)]
    model = freeze_norms(
        nn.Sequential(nn.Identity(), norm), ["1"], batches, first_apart=first_apart
    )
    sigma = torch.cat([sigma_of(x, norm) for x in batches])
    first, later = (sigma[:, 0], sigma[:, 1:]) if first_apart else (sigma, sigma)
    expected = torch.full((1, 5, 1), float(later.mean()), dtype=torch.float64)
    expected[:, 0] = first.mean()
    x = draw(4, 5, D, seed=2)
    p = dict(norm.named_parameters())
    u = x - x.mean(-1, keepdim=True)
    torch.testing.assert_close(model(x), p["gain"] * u / expected + p["bias"])


@torch.no_grad()
def test_a_norm_whose_sigma_is_the_same_for_all_tokens_is_lost_exactly():
    """The final norm after post-norm blocks without gains: all its inputs lie on one sphere."""
    sizes = Model(n_layer=2, n_head=2, n_embd=8, block_size=5)
    torch.manual_seed(0)
    model = Transformer(sizes, ARMS["layernorm_plain"].norm, "post", 7).double().eval()
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    model.final_norm = build(ARMS["layernorm"].norm, 8).double()
    tokens = torch.randint(7, (3, 5), generator=torch.Generator().manual_seed(1))
    before = model(tokens)
    last = freeze_norms(model, ["final_norm"], [tokens])(tokens)
    assert float((last - before).norm() / before.norm()) < 1e-5  # eps of the norms
    other = freeze_norms(model, ["blocks.0.attention.outside"], [tokens])(tokens)
    assert float((other - before).norm() / before.norm()) > 1e-2


def test_modules_are_replaced_wherever_they_occur_and_restored():
    norm = nn.LayerNorm(D)
    model = nn.ModuleDict({"a": norm, "b": nn.Sequential(nn.Linear(D, D), norm)})
    before = copy.copy(list(model.modules()))
    with replacing(model, {"a": nn.Identity()}):
        assert norm not in list(model.modules())
    assert list(model.modules()) == before
    assert model.get_submodule("b.1") is norm
