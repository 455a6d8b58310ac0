"""Surrogate backward passes against explicit Jacobians, and which norms of a model have them."""

from typing import get_args

import pytest
import torch
from pydantic import ValidationError
from recipes import recipe
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from normscope.nn.arms import ARMS
from normscope.nn.model import Transformer
from normscope.nn.norms import TokenNorm, build
from normscope.nn.recipe import Model, NormBackward, Placement, SurrogatesIn

D = 7
LAYERNORMS = ["layernorm", "layernorm_gain", "layernorm_bias", "layernorm_plain"]
RMSNORMS = ["rmsnorm_affine", "rmsnorm", "rmsnorm_bias", "rmsnorm_plain"]
OTHERS = ["manual_l2", "scalenorm_gain", "batchnorm", "dyt", "none"]
RULES = get_args(NormBackward)
SURROGATES = [rule for rule in RULES if rule != "exact"]
ARM = pytest.mark.parametrize("arm", LAYERNORMS + RMSNORMS)
RULE = pytest.mark.parametrize("rule", SURROGATES)
SHAPES = [(D,), (2, 3, D)]
DOSE = ("center_scale", 0.25)


def layer_of(arm: str, rule: NormBackward, share: float = 1.0) -> TokenNorm:
    """In float64, gain and bias random: for one arm the same under every rule."""
    layer = build(ARMS[arm].norm, D, rule, share).double()
    assert isinstance(layer, TokenNorm)
    g = torch.Generator().manual_seed(0)
    for p in layer.parameters():
        nn.init.uniform_(p, 0.5, 1.5, generator=g)
    return layer


def normal(*shape: int, seed: int = 1, mean: float = 0.0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    return mean + 2 * torch.randn(*shape, generator=g, dtype=torch.float64)


def tokens(*shape: int) -> Tensor:
    return normal(*shape, mean=1.5).requires_grad_()


def jacobian(x: Tensor, center: bool, eps: float, rule: NormBackward) -> Tensor:
    """dz/dx of one token ``(d,)``, a symmetric matrix, or the rule's replacement for it."""
    d = len(x)
    identity = torch.eye(d, dtype=x.dtype)
    ones = torch.full((d, d), 1 / d, dtype=x.dtype)
    centering = identity - ones if center else identity
    u = centering @ x
    sigma = (u @ u / d + eps).sqrt()
    radial = torch.outer(u, u) / (d * sigma**2)
    return {
        "exact": (centering - radial) / sigma,
        "center_scale": centering / sigma,
        "projected": centering - radial,
        "straight_through": identity,
        "detached": identity / sigma,
    }[rule]


def error_by_hand(layer: TokenNorm, x: Tensor, dy: Tensor, rule: NormBackward) -> Tensor:
    """Token by token."""
    g = dy if layer.gain is None else dy * layer.gain.detach()
    rows = zip(x.detach().reshape(-1, D), g.reshape(-1, D), strict=True)
    return torch.stack(
        [jacobian(row, layer.center, layer.eps, rule) @ error for row, error in rows]
    ).view_as(x)


def gradients(layer: nn.Module, x: Tensor, dy: Tensor) -> list[Tensor]:
    """Of x, then of gain and bias where they are."""
    return list(torch.autograd.grad(layer(x), [x, *layer.parameters()], dy))


def assert_same(ours: Tensor | list[Tensor], theirs: Tensor | list[Tensor]) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@ARM
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rule", RULES)
def test_the_error_at_the_input_is_its_closed_form(arm, shape, rule):
    layer, x, dy = layer_of(arm, rule), tokens(*shape), normal(*shape, seed=2)
    assert_same(gradients(layer, x, dy)[0], error_by_hand(layer, x, dy, rule))


@ARM
@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_a_dose_leaves_its_share_of_the_radial_part_in(arm, share):
    """Between the exact pass and center_scale in proportion; the rest is exact."""
    x, dy = tokens(2, 3, D), normal(2, 3, D, seed=2)
    ours = gradients(layer_of(arm, "center_scale", share), x, dy)
    exact = gradients(layer_of(arm, "exact"), x, dy)
    whole = error_by_hand(layer_of(arm, "center_scale"), x, dy, "center_scale")
    assert_same(ours, [exact[0] + share * (whole - exact[0]), *exact[1:]])


@ARM
def test_detached_is_autograds_gradient_with_constant_statistics(arm):
    """DetachNorm: ``gain (x - mu) / sigma + bias``, mu and sigma without a gradient."""
    layer, x, dy = layer_of(arm, "detached"), tokens(2, 3, D), normal(2, 3, D, seed=2)
    mu = x.mean(-1, keepdim=True) if layer.center else torch.zeros(())
    sigma = ((x - mu).square().mean(-1, keepdim=True) + layer.eps).sqrt()
    y = (x - mu.detach()) / sigma.detach()
    y = y if layer.gain is None else y * layer.gain
    y = y if layer.bias is None else y + layer.bias
    assert_same(layer(x), y)
    assert_same(gradients(layer, x, dy), list(torch.autograd.grad(y, [x, *layer.parameters()], dy)))


def test_only_center_scale_takes_a_radial_share():
    with pytest.raises(ValidationError, match="norm_backward projected takes no radial_share"):
        recipe("layernorm", "pre", norm_backward="projected", radial_share=0.5)


@ARM
@RULE
@pytest.mark.parametrize("shape", SHAPES)
def test_the_forward_pass_and_the_gradients_of_gain_and_bias_are_exact(arm, shape, rule):
    ours, exact = layer_of(arm, rule), layer_of(arm, "exact")
    x, dy = tokens(*shape), normal(*shape, seed=2)
    torch.testing.assert_close(ours(x), exact(x), rtol=0, atol=1e-14)
    assert_same(gradients(ours, x, dy)[1:], gradients(exact, x, dy)[1:])


@ARM
@RULE
def test_strides_do_not_matter(arm, rule):
    layer = layer_of(arm, rule)
    x, dy = tokens(2, 3, D), normal(2, 3, D, seed=2)
    expected = gradients(layer, x, dy)
    across = dy.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    assert across.stride() != dy.stride()
    assert_same(gradients(layer, x, across), expected)
    turned = x.detach().permute(2, 1, 0).contiguous().permute(2, 1, 0).requires_grad_()
    assert_same(gradients(layer, turned, dy), expected)
    assert_same(gradients(layer, turned, across), expected)
    of_ones = gradients(layer, x, torch.ones_like(x))
    assert_same(gradients(layer, x, torch.ones(1, 1, 1, dtype=x.dtype).expand(2, 3, D)), of_ones)


@ARM
@pytest.mark.parametrize(("rule", "share"), [*((rule, 1.0) for rule in SURROGATES), DOSE])
def test_stacked_layers_equal_single_layers(arm, rule, share):
    """As in training: the forward pass is mapped over models, the backward pass runs outside."""
    layers = [layer_of(arm, rule, share) for _ in range(3)]
    for i, layer in enumerate(layers):
        for p in layer.parameters():
            p.data *= i + 1
    parameters, _ = stack_module_state(layers)
    x, dy = tokens(3, 2, D), normal(3, 2, D, seed=2)

    def stacked(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(layers[0], (parameters, {}), (x,))

    y = vmap(stacked)(parameters, x)
    together = torch.autograd.grad(y, [x, *parameters.values()], dy)
    for i, layer in enumerate(layers):
        alone = x[i].detach().requires_grad_()
        assert_same([g[i] for g in together], gradients(layer, alone, dy[i]))


@ARM
@RULE
def test_a_constant_and_a_zero_token_have_finite_errors(arm, rule):
    x = torch.stack([torch.zeros(D), torch.full((D,), 3.0)]).double().requires_grad_()
    layer, dy = layer_of(arm, rule), normal(2, D, seed=2)
    ours = gradients(layer, x, dy)
    assert all(g.isfinite().all() for g in ours)
    torch.testing.assert_close(ours[0], error_by_hand(layer, x, dy, rule), rtol=1e-12, atol=1e-10)


@ARM
@RULE
def test_a_second_derivative_is_an_error(arm, rule):
    x = tokens(4, D)
    (dx,) = torch.autograd.grad(layer_of(arm, rule)(x).pow(3).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dx.square().sum().backward()


@RULE
@pytest.mark.parametrize("arm", OTHERS)
def test_a_surrogate_of_another_norm_is_an_error(arm, rule):
    with pytest.raises(ValueError, match=f"norm_backward {rule} is defined for LayerNorm and RMS"):
        build(ARMS[arm].norm, D, rule)
    placement = "none" if arm == "none" else "pre"
    with pytest.raises(ValidationError, match=f"norm_backward {rule} is defined for LayerNorm"):
        recipe(arm, placement, norm_backward=rule)


# of the norms in a block
PLACES: dict[Placement, list[str]] = {
    "pre": ["attention.before", "mlp.before"],
    "post": ["attention.outside", "mlp.outside"],
    "peri": ["attention.before", "attention.after", "mlp.before", "mlp.after"],
    "lns": ["attention.before", "mlp.before"],
    "hybrid": ["attention.outside", *(f"attention.f.{name}_norm" for name in "qkv")],
    "deepnorm": ["attention.outside", "mlp.outside"],
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("surrogates_in", get_args(SurrogatesIn))
@pytest.mark.parametrize("placement", PLACES)
def test_surrogates_replace_the_chosen_norms(placement, surrogates_in, rule):
    in_blocks = {f"blocks.{i}.{place}" for i in range(2) for place in PLACES[placement]}
    final = set() if placement in ("post", "deepnorm") else {"final_norm"}
    every = in_blocks | final | {"embedding_norm"}
    chosen = {"all": every, "blocks": in_blocks, "final": final}[surrogates_in]
    sizes = {"n_layer": 2, "n_head": 1, "n_embd": D, "block_size": 6}
    choices = {"norm_backward": rule, "surrogates_in": surrogates_in, "embedding_norm": True}
    model = Transformer(
        Model.model_validate(sizes | choices), ARMS["layernorm"].norm, placement, 11
    )
    layers = {name: m for name, m in model.named_modules() if isinstance(m, TokenNorm)}
    expected = {name: rule if name in chosen else "exact" for name in every}
    assert {name: layer.norm_backward for name, layer in layers.items()} == expected
